// The part of a graph that one stage computes, with its borders.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace millrace {

/// A set of operators of `graph` (which must outlive it) and what crosses its border. All lists ascend.
struct StageGraph {
  const Graph* graph = nullptr;
  std::vector<OpId> ops;
  std::vector<TensorId> inputs;      ///< activations from outside, graph inputs and labels that its operators read
  std::vector<TensorId> outputs;     ///< its activations that operators outside read, and the loss operator's outputs
  std::vector<TensorId> parameters;  ///< that its operators use; tied tensors once
  std::vector<TensorId> buffers;
  std::vector<TensorId> gradient_inputs;   ///< those of `inputs` that a gradient goes back to (activations)
  std::vector<TensorId> gradient_outputs;  ///< those of `outputs` that a gradient comes back for (read outside)
};

/// \pre `ops` ascends and has no duplicates.
StageGraph make_stage_graph(const Graph& graph, std::span<const OpId> ops);

}  // namespace millrace
