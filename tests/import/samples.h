// Small valid files of every kind, read by several tests; and where the published workloads lie.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace millrace::import::samples {

struct Sample {
  std::string file;  ///< a name that its kind would have
  std::string text;
};

/// dnn-partitioning: nodes 1 and 2 forward, 3 and 4 their twins, 5 a backward node of its own, 6 without class and not
/// for accelerators.
const Sample& split();
/// Piper: 7 → 8 → 9 and 7 → 9, degrees 1 and 2.
const Sample& piper();
/// PipeDream: an input, an embedding, an LSTM with a list of activations.
const Sample& profile();
/// A graph file in YAML, the example of INTERFACES 5.
const Sample& graph_yaml();
/// A graph file in JSON with operators of several kinds.
const Sample& graph_json();

/// A graph file that carries what the sample of dnn-partitioning says.
Sample graph_with_split();

std::vector<Sample> all();

/// The text with the first `from` replaced. \pre it is there.
std::string with(const std::string& text, const std::string& from, const std::string& to);

/// The folder MILLRACE_WORKLOADS, else shared/workloads beside the source tree; nothing where it is absent.
std::optional<std::filesystem::path> workloads();

}  // namespace millrace::import::samples
