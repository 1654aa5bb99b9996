// Edge costs by the closed forms, and the rule that keeps partial sums through linear operators.
#include "shard/costs.h"

namespace millrace::shard {

Property gradient_of(Property operand, const Use& use) {
  if (operand.is_split()) return operand;
  if (operand.is_partial() || use.kind == Use::Kind::whole) return kReplicated;
  return kPartialSum;
}

Seconds edge_time(Property kept, Property needed, bool output, const Use& use, double bytes, int devices,
                  cluster::Link link) {
  if (output) {
    return axis_time(needed, kept, bytes, devices, link) +
           axis_time(gradient_kept(kept), gradient_kept(needed), bytes, devices, link);
  }
  return axis_time(kept, needed, bytes, devices, link) +
         axis_time(gradient_of(needed, use), gradient_kept(kept), bytes, devices, link);
}

bool passes_partial(const Graph& graph, const OpTable& ops, const TensorTable& tensors,
                    const std::vector<Placement>& placements, OpId op, const Use& use, int axis) {
  const auto operands = ops.operands(op);
  for (const Operand& operand : operands) {
    if (operand.side != Side::input || operand.linear != '+') continue;
    if (placements[static_cast<std::size_t>(operand.tensor)][static_cast<std::size_t>(axis)] != kPartialSum) {
      return false;
    }
  }
  if (use.operand < 0) return true;
  const TensorId factor = operands[static_cast<std::size_t>(use.operand)].tensor;
  return tensors.view(graph.op(op).outputs.front()).bytes() <= tensors.view(factor).bytes();
}

}  // namespace millrace::shard
