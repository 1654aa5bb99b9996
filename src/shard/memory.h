// What each device of a mesh holds under a decision.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "shard/decision.h"
#include "shard/mesh.h"
#include "shard/tensor_table.h"

namespace millrace::shard {

/// What is counted.
struct HeldOptions {
  std::int64_t optimizer_bytes = 8;  ///< of state for each number of a parameter, beside it and its gradient
  std::vector<OpId> ops{};           ///< ascending; empty: all
  std::int64_t live = 1;             ///< micro-batches whose outputs are held
};

/// Parameters with their gradients and state, and the outputs of operators for the live micro-batches, by device.
std::vector<Bytes> memory_of(const Graph& graph, const OpTable& ops, const TensorTable& tensors, const Mesh& mesh,
                             const Decision& decision, const HeldOptions& options);

/// The part of that, over all places of `axis`, which is split along it.
Bytes split_memory(const Graph& graph, const OpTable& ops, const TensorTable& tensors, const Mesh& mesh,
                   const Decision& decision, const HeldOptions& options, int axis);

}  // namespace millrace::shard
