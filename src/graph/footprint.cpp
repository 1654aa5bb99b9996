// Sums over operands of what an operator's row declares.
#include "graph/footprint.h"

#include <algorithm>

#include "base/distinct.h"
#include "graph/width.h"

namespace millrace {
namespace {

constexpr std::int64_t kIndexBytes = 4;

Bytes sum(const Graph& graph, std::span<const TensorId> ids, std::int64_t real_bytes) {
  Bytes bytes;
  for (const TensorId id : ids) bytes += tensor_bytes(graph.tensor(id), real_bytes);
  return bytes;
}

}  // namespace

Bytes tensor_bytes(const Tensor& tensor, std::int64_t real_bytes) {
  switch (tensor.shape.element) {
    case ElementType::real:
      return Bytes(tensor.shape.elements_per_sample() * (is_wide(tensor) ? wide_bytes(real_bytes) : real_bytes));
    case ElementType::index:
      return Bytes(tensor.shape.elements_per_sample() * kIndexBytes);
    case ElementType::byte:
      return Bytes(tensor.shape.elements_per_sample());
  }
  return Bytes(0);
}

std::int64_t parameter_elements(const Tensor& tensor) {
  constexpr std::int64_t kRealBytes = 4;
  const std::int64_t count = tensor.shape.elements_per_sample();
  return tensor.shape.element == ElementType::byte ? (count + kRealBytes - 1) / kRealBytes : count;
}

SavedTensors saved_tensors(const Graph& graph, std::span<const OpId> ops) {
  SavedTensors all;
  for (const OpId id : ops) {
    if (const OpFigures* figures = graph.figures(id)) {
      all.extra_per_sample += Bytes(figures->saved_bytes);
      continue;
    }
    const Operator& op = graph.op(id);
    const Saved saved = op.schema->saved(op.attributes, graph.shapes(id));
    for (const int i : saved.inputs) all.tensors.push_back(op.inputs[static_cast<std::size_t>(i)]);
    for (const int i : saved.outputs) all.tensors.push_back(op.outputs[static_cast<std::size_t>(i)]);
    all.extra_reals_per_sample += saved.extra_reals_per_sample;
    all.extra_reals_per_micro_batch += saved.extra_reals_per_micro_batch;
  }
  sort_distinct(all.tensors);
  return all;
}

Bytes saved_bytes_per_sample(const Graph& graph, std::span<const OpId> ops, std::int64_t real_bytes) {
  const SavedTensors saved = saved_tensors(graph, ops);
  return sum(graph, saved.tensors, real_bytes) + Bytes(saved.extra_reals_per_sample * wide_bytes(real_bytes)) +
         saved.extra_per_sample;
}

Bytes output_bytes_per_sample(const Graph& graph, OpId op, std::int64_t real_bytes) {
  return sum(graph, graph.op(op).outputs, real_bytes);
}

Bytes parameter_bytes(const Graph& graph, std::span<const OpId> ops, std::int64_t real_bytes) {
  std::vector<TensorId> used;
  for (const OpId op : ops) used.insert(used.end(), graph.op(op).parameters.begin(), graph.op(op).parameters.end());
  sort_distinct(used);
  return sum(graph, used, real_bytes);
}

Traffic forward_traffic(const Graph& graph, OpId id, std::int64_t real_bytes) {
  const Operator& op = graph.op(id);
  return {.per_sample = sum(graph, op.inputs, real_bytes) + sum(graph, op.outputs, real_bytes),
          .per_call = sum(graph, op.parameters, real_bytes) + sum(graph, op.buffers, real_bytes)};
}

OpFlops flops(const Graph& graph, OpId op) {
  if (graph.figures(op) != nullptr) return {};
  return graph.op(op).schema->flops(graph.op(op).attributes, graph.shapes(op));
}

}  // namespace millrace
