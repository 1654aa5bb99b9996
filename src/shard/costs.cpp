// Edge costs by the closed forms, and the rule that keeps partial sums through linear operators.
#include "shard/costs.h"

namespace millrace::shard {

Property gradient_of(Property operand, const Use& use) {
  if (operand.is_split()) return operand;
  if (operand.is_partial() || use.kind == Use::Kind::whole) return kReplicated;
  return kPartialSum;
}

bool has_gradient(const Graph& graph, const Operand& operand) {
  const Tensor& tensor = graph.tensor(operand.tensor);
  if (tensor.shape.element == ElementType::index) return false;
  return operand.side == Side::parameter || operand.side == Side::output ||
         (operand.side == Side::input && tensor.role == Role::activation);
}

Seconds edge_time(const Edge& edge, const Use& use, int devices, cluster::Link link) {
  const auto time = [&](Property from, Property to) { return axis_time(from, to, edge.bytes, devices, link); };
  const Property kept = gradient_kept(edge.kept);
  if (edge.output) {
    return time(edge.needed, edge.kept) + (edge.gradient ? time(kept, gradient_kept(edge.needed)) : Seconds{});
  }
  return time(edge.kept, edge.needed) + (edge.gradient ? time(gradient_of(edge.needed, use), kept) : Seconds{});
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
