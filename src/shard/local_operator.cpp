// Attributes that count along a split dimension shrink with it.
#include "shard/local_operator.h"

#include <algorithm>

namespace millrace::shard {
namespace {

/// The dimension of `letter` in one of the words: operand, then position; words are as OpTable lists operands.
struct Found {
  std::size_t operand = 0;
  std::size_t dim = 0;
};

std::optional<Found> find(const Letters& letters, std::size_t buffers, char letter) {
  std::size_t operand = 0;
  const auto in = [&](const std::vector<std::string>& words) -> std::optional<Found> {
    for (const std::string& word : words) {
      const std::size_t dim = word.find(letter);
      if (dim != std::string::npos) return Found{operand, dim};
      ++operand;
    }
    return std::nullopt;
  };
  if (const auto found = in(letters.inputs)) return found;
  if (const auto found = in(letters.parameters)) return found;
  operand += buffers;
  return in(letters.outputs);
}

}  // namespace

Dims local_dims(const Box& box, bool batched) {
  Dims dims;
  for (std::size_t i = batched ? 1 : 0; i < box.size(); ++i) dims.push_back(box[i].size());
  return dims;
}

LocalOperator local_operator(const Graph& graph, const OpTable& ops, const TensorTable& tensors, const Mesh& mesh,
                             OpId op, const Uses& uses, int device) {
  const Operator& node = graph.op(op);
  const auto operands = ops.operands(op);
  LocalOperator local{.attributes = node.attributes};
  std::size_t buffers = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Placement parts = placement(ops, op, i, uses, mesh.axis_count());
    local.boxes.push_back(box_of(tensors.view(operands[i].tensor), parts, mesh, device));
    if (operands[i].side == Side::buffer) ++buffers;
  }
  const Letters letters = node.schema->letters(node.attributes, graph.shapes(op));
  for (const auto& [name, letter] : letters.counts) {
    if (letter == '*') {
      const TensorId output = node.outputs.front();
      const std::size_t at = operands.size() - node.outputs.size();
      local.attributes.set(name, local_dims(local.boxes[at], graph.tensor(output).shape.batched));
      continue;
    }
    const auto found = find(letters, buffers, letter);
    if (!found) continue;
    const std::int64_t whole = tensors.view(operands[found->operand].tensor).extents[found->dim];
    const std::int64_t part = local.boxes[found->operand][found->dim].size();
    local.attributes.set(name, node.attributes.integer(name) * part / whole);
  }
  for (int axis = 0; axis < mesh.axis_count(); ++axis) {
    const Use& use = uses[static_cast<std::size_t>(axis)];
    if (use.kind != Use::Kind::letter) continue;
    if (ops.reduces(op, use)) local.inner_axes |= 1U << axis;
    if ((ops.row(op).contracted >> use.letter & 1U) == 0) continue;
    const bool indexed = std::any_of(operands.begin(), operands.end(), [&](const Operand& one) {
      return one.side == Side::input && graph.tensor(one.tensor).shape.element == ElementType::index;
    });
    for (std::size_t i = 0; indexed && i < operands.size(); ++i) {
      const int dim = operands[i].dim_of(use.letter);
      if (dim >= 0) local.indices = local.boxes[i][static_cast<std::size_t>(dim)];
    }
  }
  return local;
}

}  // namespace millrace::shard
