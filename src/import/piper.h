// Reads the JSON workloads of "Piper: Multidimensional Planner for DNN Parallelization" (Tarnawski et al., NeurIPS
// 2021): layers with their cost at each tensor-parallel degree, plain and recomputed.
#pragma once

#include <string>
#include <string_view>

#include "graph/graph.h"
#include "import/json_file.h"

namespace millrace::import {

/// The graph of a file, with Carried{"piper", TensorParallelModel}; a sample of the graph is a micro-batch of the file.
///
/// Figures are those of the smallest degree (1) and of its variant "vanilla" (the first where none is called so).
/// timePerSample is forward and backward together: a third goes to forward_s, a third each to backward_input_s and
/// backward_weight_s, or two thirds to backward_input_s where there are no parameters. parameter_bytes is
/// parameterSize, saved_bytes memoryUsageA, output_bytes the largest communicationCost of the out-edges, all rounded
/// up. The number of micro-batches is `mbsInBatch`, or `maxBatchSize` as the format's description calls it.
///
/// \param file  name of the file as errors cite it; its stem names the graph.
/// \throws InvalidInput  with file, line and key: no JSON, missing keys, wrong types, negative or infinite numbers, ids
/// twice or unknown, edges twice or from a node to itself, cycles, no nodes, a node without variants, a synchronisation
/// that belongs to no edge, or an edge without one.
Graph read_piper(std::string_view text, const std::string& file);
Graph read_piper(const JsonFile& file);

}  // namespace millrace::import
