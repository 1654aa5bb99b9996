// Adds up boxes.
#include "shard/memory.h"

#include <algorithm>

#include "shard/index.h"

namespace millrace::shard {
namespace {

/// f(tensor, placement, bytes of an element) for all that stays.
template <class F>
void each(const Graph& graph, const OpTable& ops, const TensorTable& tensors, const Mesh& mesh,
          const Decision& decision, const HeldOptions& options, F f) {
  const auto counts = [&](OpId op) {
    return options.ops.empty() || std::binary_search(options.ops.begin(), options.ops.end(), op);
  };
  for (const TensorId id : graph.parameters()) {
    const auto users = graph.consumers(id);
    if (!options.ops.empty() && std::none_of(users.begin(), users.end(), counts)) continue;
    f(id, decision.placements[index(id)], 2 * tensors.view(id).element_bytes + options.optimizer_bytes);
  }
  for (OpId op = 0; op < graph.size(); ++op) {
    if (!counts(op)) continue;
    const auto operands = ops.operands(op);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].side != Side::output) continue;
      f(operands[i].tensor, placement(ops, op, i, decision.uses[index(op)], mesh.axis_count()),
        options.live * tensors.view(operands[i].tensor).element_bytes);
    }
  }
}

}  // namespace

std::vector<Bytes> memory_of(const Graph& graph, const OpTable& ops, const TensorTable& tensors, const Mesh& mesh,
                             const Decision& decision, const HeldOptions& options) {
  std::vector<Bytes> held(index(mesh.size()));
  each(graph, ops, tensors, mesh, decision, options,
       [&](TensorId id, const Placement& placement, std::int64_t element) {
         for (int device = 0; device < mesh.size(); ++device) {
           held[index(device)] += Bytes(volume(box_of(tensors.view(id), placement, mesh, device)) * element);
         }
       });
  return held;
}

Bytes split_memory(const Graph& graph, const OpTable& ops, const TensorTable& tensors, const Mesh& mesh,
                   const Decision& decision, const HeldOptions& options, int axis) {
  Bytes sum{};
  each(graph, ops, tensors, mesh, decision, options,
       [&](TensorId id, const Placement& placement, std::int64_t element) {
         if (!placement[index(axis)].is_split()) return;
         sum += Bytes(tensors.view(id).bytes() / tensors.view(id).element_bytes * element);
       });
  return sum;
}

}  // namespace millrace::shard
