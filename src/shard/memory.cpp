// Adds up boxes.
#include "shard/memory.h"

#include "shard/index.h"

namespace millrace::shard {
namespace {

/// f(tensor, placement, bytes of an element) for all that stays.
template <class F>
void each(const Graph& graph, const OpTable& ops, const TensorTable& tensors, const Mesh& mesh,
          const Decision& decision, std::int64_t optimizer_bytes, F f) {
  for (const TensorId id : graph.parameters()) {
    f(id, decision.placements[index(id)], 2 * tensors.view(id).element_bytes + optimizer_bytes);
  }
  for (OpId op = 0; op < graph.size(); ++op) {
    const auto operands = ops.operands(op);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].side != Side::output) continue;
      f(operands[i].tensor, placement(ops, op, i, decision.uses[index(op)], mesh.axis_count()),
        tensors.view(operands[i].tensor).element_bytes);
    }
  }
}

}  // namespace

std::vector<Bytes> memory_of(const Graph& graph, const OpTable& ops, const TensorTable& tensors, const Mesh& mesh,
                             const Decision& decision, std::int64_t optimizer_bytes) {
  std::vector<Bytes> held(index(mesh.size()));
  each(graph, ops, tensors, mesh, decision, optimizer_bytes,
       [&](TensorId id, const Placement& placement, std::int64_t element) {
         for (int device = 0; device < mesh.size(); ++device) {
           held[index(device)] += Bytes(volume(box_of(tensors.view(id), placement, mesh, device)) * element);
         }
       });
  return held;
}

Bytes split_memory(const Graph& graph, const OpTable& ops, const TensorTable& tensors, const Mesh& mesh,
                   const Decision& decision, std::int64_t optimizer_bytes, int axis) {
  Bytes sum{};
  each(graph, ops, tensors, mesh, decision, optimizer_bytes,
       [&](TensorId id, const Placement& placement, std::int64_t element) {
         if (!placement[index(axis)].is_split()) return;
         sum += Bytes(tensors.view(id).bytes() / tensors.view(id).element_bytes * element);
       });
  return sum;
}

}  // namespace millrace::shard
