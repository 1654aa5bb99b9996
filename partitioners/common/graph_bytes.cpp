// Asks every operator's row once what its backward reads.
#include "partitioners/common/graph_bytes.h"

#include <string_view>
#include <unordered_map>

#include "graph/footprint.h"

namespace millrace::partitioners {
namespace {

// Layers by number: operators with one tag share one, those without a tag have their own (plan/recompute.h).
std::vector<int> layers(const Graph& graph) {
  std::unordered_map<std::string_view, int> tags;
  std::vector<int> of;
  int count = 0;
  for (const Operator& op : graph.operators()) {
    const int layer = op.layer.empty() ? count : tags.try_emplace(op.layer, count).first->second;
    if (layer == count) ++count;
    of.push_back(layer);
  }
  return of;
}

}  // namespace

GraphBytes::GraphBytes(const Graph& graph, plan::TrainingBytes training, bool memory) : sizes(training) {
  const auto at = [](auto id) { return static_cast<std::size_t>(id); };
  tensor.reserve(graph.tensors().size());
  for (const Tensor& item : graph.tensors()) {
    tensor.push_back(static_cast<double>(tensor_bytes(item, sizes.real).value()));
  }
  if (!memory) return;

  const auto ops = static_cast<std::size_t>(graph.size());
  const std::vector<int> layer = layers(graph);
  saved.assign(tensor.size(), false);
  starts_segment.assign(tensor.size(), false);
  beside.assign(ops, 0.0);
  beside_once.assign(ops, 0.0);
  for (OpId op = 0; op < graph.size(); ++op) {
    for (const TensorId input : graph.op(op).inputs) {
      const OpId producer = graph.tensor(input).producer;
      if (producer >= 0 && layer[at(producer)] != layer[at(op)]) starts_segment[at(input)] = true;
    }
  }
  std::vector<double> by_layer(ops, 0.0), by_layer_once(ops, 0.0);
  std::vector<bool> counted(tensor.size(), false);
  for (OpId op = 0; op < graph.size(); ++op) {
    const SavedTensors kept = saved_tensors(graph, std::span(&op, 1));
    beside[at(op)] = static_cast<double>(kept.extra_reals_per_sample * sizes.real + kept.extra_per_sample.value());
    beside_once[at(op)] = static_cast<double>(kept.extra_reals_per_micro_batch * sizes.real);
    by_layer[at(layer[at(op)])] += beside[at(op)];
    by_layer_once[at(layer[at(op)])] += beside_once[at(op)];
    for (const TensorId id : kept.tensors) {
      saved[at(id)] = true;
      const OpId producer = graph.tensor(id).producer;
      if (producer < 0 || layer[at(producer)] != layer[at(op)] || starts_segment[at(id)] || counted[at(id)]) continue;
      counted[at(id)] = true;
      by_layer[at(layer[at(op)])] += tensor[at(id)];
    }
  }
  if (graph.loss() >= 0) {
    for (const TensorId output : graph.op(graph.loss()).outputs) {
      saved[at(output)] = true;
      starts_segment[at(output)] = true;  // on the stage's border, so never brought back
    }
  }
  for (OpId op = 0; op < graph.size(); ++op) {
    recomputed.push_back(by_layer[at(layer[at(op)])]);
    recomputed_once.push_back(by_layer_once[at(layer[at(op)])]);
  }
}

}  // namespace millrace::partitioners
