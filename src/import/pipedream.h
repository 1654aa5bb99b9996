// Reads the text profiles of PipeDream (Narayanan et al., SOSP 2019), graph.txt, which DAPPLE (Fan et al., PPoPP 2021)
// uses too: lines `node -- description -- forward_compute_time=…, …` and `\tnode -- node`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace millrace::import {

/// The graph of a file, with Carried{"pipedream", LayerProfile}; a sample of the graph is the profiled mini-batch.
///
/// Times are milliseconds in the file and divided by 1,000. backward_compute_time goes half to backward_input_s and
/// half to backward_weight_s where the layer has parameters, else all to backward_input_s. activation_size is a number,
/// or a list `[a; b]` that is summed; output_bytes and saved_bytes are that sum. Sizes are rounded up to whole bytes.
/// Names are those before the first ` -- `; the descriptions tell inputs (`Input…`) and are not kept.
///
/// \param profile_batch  samples of the profiled mini-batch; by default the number after `pbs-` in the name of the
/// file, else 1. \param file  name of the file as errors cite it; its stem names the graph. \throws InvalidInput  with
/// file, line and field: a line of neither form, a field that is missing, unknown or no number, negative or too large,
/// a node twice or unknown, an edge twice or from a node to itself, a cycle, no nodes.
Graph read_pipedream(std::string_view text, const std::string& file, std::optional<double> profile_batch = {});

/// Whether the text looks like such a profile: its first line that is not empty holds ` -- `.
bool is_pipedream(std::string_view text);

}  // namespace millrace::import
