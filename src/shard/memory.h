// What each device of a mesh holds under a decision.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "shard/decision.h"
#include "shard/mesh.h"
#include "shard/tensor_table.h"

namespace millrace::shard {

/// Parameters with their gradients and `optimizer_bytes` of state for each number, and the outputs of all operators for
/// one micro-batch, by device.
std::vector<Bytes> memory_of(const Graph& graph, const OpTable& ops, const TensorTable& tensors, const Mesh& mesh,
                             const Decision& decision, std::int64_t optimizer_bytes);

/// The part of that, over all places of `axis`, which is split along it.
Bytes split_memory(const Graph& graph, const OpTable& ops, const TensorTable& tensors, const Mesh& mesh,
                   const Decision& decision, std::int64_t optimizer_bytes, int axis);

}  // namespace millrace::shard
