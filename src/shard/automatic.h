// The automatic choice: signatures for every operator with no annotation, by a dynamic program (METHODS 7).
#pragma once

#include <cstdint>

#include "cost/cost_model.h"
#include "shard/decision.h"
#include "shard/mesh.h"
#include "shard/reshard.h"
#include "shard/tensor_table.h"

namespace millrace::shard {

struct ChoiceOptions {
  int axis = 0;                    ///< that is decided; the other axes stay as they are in the decision
  int ratio = 0;                   ///< of splits: Mesh::ratios
  double seconds_per_byte = 0;     ///< price of memory that the fullest device holds
  std::int64_t micro_batches = 1;  ///< gradients of parameters are reduced once for so many
  std::size_t most_states = 4096;  ///< at a point of the order; more are pruned to the cheapest
};

struct Choice {
  Decision decision{};
  Seconds time{};     ///< of one micro-batch as the program counts it
  bool exact = true;  ///< no state was pruned: the decision costs least of all
};

/// Walks the operators in topological order. A state is how the live tensors are kept; at a cut node that is one
/// tensor, and what lies between two of them is the branches inside. An operator costs its computation on the slowest
/// device, the conversions of its edges in both passes, and the reduction of its parameters' gradients.
Choice choose(const Graph& graph, const OpTable& ops, const TensorTable& tensors, const Mesh& mesh,
              const MeshLinks& links, const cost::CostModel& cost, Decision decision, const ChoiceOptions& options);

}  // namespace millrace::shard
