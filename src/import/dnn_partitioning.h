// Reads the JSON workloads of "Efficient Algorithms for Device Placement of DNN Graph Operators" (Tarnawski et al.,
// NeurIPS 2020): nodes with latencies on accelerator and CPU, colour classes, forward and backward nodes.
#pragma once

#include <string>
#include <string_view>

#include "graph/graph.h"
#include "import/json_file.h"

namespace millrace::import {

/// The graph of a file, with Carried{"dnn-partitioning", SplitModel}.
///
/// - An operator is a colour class: forward and backward twins, and all that must share a device; a node without class
///   is an operator of its own. Classes on a common cycle become one operator.
/// - The order of operators follows the edges between forward nodes. A class of backward nodes only takes its place
/// from
///   the edges between backward nodes, mirrored. All other backward edges say nothing about the order (in the layer
///   files they even run in forward direction); they count as transfers.
/// - Figures: forward_s is the sum of fpgaLatency over the class's forward nodes; that over its backward nodes goes
/// half
///   to backward_input and half to backward_weight where the class has a size, else all to backward_input.
///   parameter_bytes is the sum of `size`, rounded up. output_bytes is 0: the format knows how long a transfer takes,
///   not how much it moves; only the objective max_load sees transfers. Units are the file's own: what it counts in
///   milliseconds reads as seconds.
/// - `size` may be absent, as the published planner allows it: 0, told in a notice.
///
/// \param file  name of the file as errors cite it; its stem names the graph.
/// \throws InvalidInput  with file, line and key: no JSON, missing keys, wrong types, negative or infinite numbers, ids
/// twice or unknown, an edge from a node to itself or from a backward to a forward node, cycles, unequal costs on the
/// edges of one node, no nodes.
Graph read_dnn_partitioning(std::string_view text, const std::string& file);
Graph read_dnn_partitioning(const JsonFile& file);

}  // namespace millrace::import
