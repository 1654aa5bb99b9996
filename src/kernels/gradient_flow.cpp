// Follows gradients through a stage: forward to see where they are of use, backward to see where they arrive.
#include "kernels/gradient_flow.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace millrace::kernels {

GradientFlow gradient_flow(const StageGraph& stage) {
  const Graph& graph = *stage.graph;
  const std::size_t count = stage.ops.size();
  GradientFlow flow{std::vector<bool>(count), std::vector<std::vector<bool>>(count)};

  // Forward: where gradients are of use.
  std::unordered_set<TensorId> useful(stage.gradient_inputs.begin(), stage.gradient_inputs.end());
  for (std::size_t i = 0; i < count; ++i) {
    const Operator& op = graph.op(stage.ops[i]);
    bool any = !op.parameters.empty();
    for (const TensorId input : op.inputs) {
      flow.wanted[i].push_back(useful.contains(input));
      any = any || flow.wanted[i].back();
    }
    if (any) useful.insert(op.outputs.begin(), op.outputs.end());
  }

  // Backward: where gradients arrive.
  std::unordered_set<TensorId> arriving;
  for (std::size_t i = count; i-- > 0;) {
    const OpId id = stage.ops[i];
    const Operator& op = graph.op(id);
    const TensorId output = op.outputs[0];
    const bool from_outside =
        id == graph.loss() || std::binary_search(stage.gradient_outputs.begin(), stage.gradient_outputs.end(), output);
    flow.active[i] = (from_outside || arriving.contains(output)) && useful.contains(output);
    for (std::size_t k = 0; k < op.inputs.size(); ++k) {
      flow.wanted[i][k] = flow.wanted[i][k] && flow.active[i];
      if (flow.wanted[i][k]) arriving.insert(op.inputs[k]);
    }
  }
  return flow;
}

std::vector<std::vector<std::size_t>> completed_behind(const StageGraph& stage, const GradientFlow& flow) {
  std::vector<std::vector<std::size_t>> completed(stage.ops.size());
  std::unordered_map<TensorId, std::size_t> first;  // reader, by tensor
  for (std::size_t i = stage.ops.size(); i-- > 0;) {
    const Operator& op = stage.graph->op(stage.ops[i]);
    const auto reader = first.find(op.outputs[0]);
    if (flow.active[i] && reader != first.end()) completed[reader->second].push_back(i);
    for (std::size_t k = 0; k < op.inputs.size(); ++k) {
      if (flow.wanted[i][k]) first[op.inputs[k]] = i;
    }
  }
  return completed;
}

}  // namespace millrace::kernels
