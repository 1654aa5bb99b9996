// Values, conversions and inner reductions of the per-device graph.
#include "shard/expansion.h"

#include <algorithm>

namespace millrace::shard {

ValueId Expansion::value(TensorId tensor, const Placement& placement, bool gradient) {
  result.values.push_back({tensor, placement, gradient});
  return static_cast<ValueId>(result.values.size()) - 1;
}

Placement Expansion::operand_placement(OpId op, std::size_t operand) const {
  return placement(ops, op, operand, result.decision.uses[static_cast<std::size_t>(op)], mesh.axis_count());
}

Seconds Expansion::time(TensorId tensor, const std::vector<Step>& steps) const {
  Seconds sum{};
  for (const Step& step : steps) sum += step_cost(tensors.view(tensor), step, mesh, links).time;
  return sum;
}

ValueId Expansion::convert(std::vector<Instruction>& list, ValueId from, const std::vector<Step>& steps, OpId behind,
                           bool per_iteration, std::vector<ValueId>* there) {
  for (const Step& step : steps) {
    const Value source = result.values[static_cast<std::size_t>(from)];
    Instruction one{.kind = Instruction::Kind::convert, .op = behind, .from = from, .step = step};
    one.to = value(source.tensor, step.to, source.gradient);
    one.cost = step_cost(tensors.view(source.tensor), step, mesh, links);
    one.per_iteration = per_iteration;
    from = one.to;
    if (there != nullptr) there->push_back(one.to);
    list.push_back(std::move(one));
  }
  return from;
}

// A contracted letter takes the maximum, the sum of exponentials and the element of the label of each row, in forward;
// a letter of the output takes the statistics that the operator keeps, in both passes.
std::vector<InnerReduction> Expansion::inner(OpId op, bool forward) const {
  std::vector<InnerReduction> list;
  const Uses& uses = result.decision.uses[static_cast<std::size_t>(op)];
  const Operator& node = graph.op(op);
  const auto operands = ops.operands(op);
  for (int axis = 0; axis < mesh.axis_count(); ++axis) {
    const Use& use = uses[static_cast<std::size_t>(axis)];
    if (!ops.reduces(op, use)) continue;
    const bool contracted = (ops.row(op).contracted >> use.letter & 1U) != 0;
    InnerReduction one{.axes = 1U << axis};
    if (contracted) {
      if (!forward) continue;
      constexpr std::int64_t kValuesOfARow = 3;
      const TensorView view = tensors.view(operands.front().tensor);
      one.elements = kValuesOfARow;
      for (int dim = 0; dim < operands.front().rank; ++dim) {
        if (operands.front().letters[static_cast<std::size_t>(dim)] != use.letter) {
          one.elements *= view.extents[static_cast<std::size_t>(dim)];
        }
      }
    } else {
      if (!options.synchronised_batch_norm) continue;
      one.elements = node.schema->saved(node.attributes, graph.shapes(op)).extra_reals_per_micro_batch;
    }
    const std::int64_t element_bytes = tensors.view(operands.front().tensor).element_bytes;
    const cluster::Link link = links.link(one.axes);
    const int devices = mesh.axis_size(axis);
    const std::int64_t bytes = one.elements * element_bytes;
    one.cost = {Bytes(2 * (devices - 1) * bytes * (mesh.size() / devices)),
                axis_time(kPartialSum, kReplicated, static_cast<double>(bytes), devices, link)};
    list.push_back(one);
  }
  return list;
}

}  // namespace millrace::shard
