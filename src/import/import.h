// Reads the graph of any file that millrace understands; the kind is told by the content, not by the name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace millrace::import {

struct Options {
  std::optional<double> profile_batch;  ///< of PipeDream profiles, instead of what the file's name says
};

struct Imported {
  Graph graph;
  std::string format;      ///< "dnn-partitioning", "piper", "pipedream", "millrace graph"
  std::int64_t batch = 1;  ///< the file's own, in samples of the graph: what an iteration is without a data section
};

/// \throws InvalidInput  a file that is missing, a folder, empty, of no known kind, or broken: with line and key.
Imported load(const std::filesystem::path& file, const Options& options = {});

/// The same for text; errors cite it as `file`, whose stem names the graph.
Imported load_text(std::string_view text, const std::string& file, const Options& options = {});

}  // namespace millrace::import
