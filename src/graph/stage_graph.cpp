// Finds what crosses the border of a set of operators.
#include "graph/stage_graph.h"

#include <algorithm>
#include <iterator>

#include "base/distinct.h"

namespace millrace {
namespace {}  // namespace

StageGraph make_stage_graph(const Graph& graph, std::span<const OpId> ops) {
  StageGraph stage;
  stage.graph = &graph;
  stage.ops.assign(ops.begin(), ops.end());
  const auto inside = [&](OpId op) { return std::binary_search(ops.begin(), ops.end(), op); };

  for (const OpId id : ops) {
    const Operator& op = graph.op(id);
    for (const TensorId input : op.inputs) {
      const OpId producer = graph.tensor(input).producer;
      if (producer < 0 || !inside(producer)) stage.inputs.push_back(input);
    }
    stage.parameters.insert(stage.parameters.end(), op.parameters.begin(), op.parameters.end());
    stage.buffers.insert(stage.buffers.end(), op.buffers.begin(), op.buffers.end());
    for (const TensorId output : op.outputs) {
      const std::span<const OpId> readers = graph.consumers(output);
      const bool read_outside = !std::all_of(readers.begin(), readers.end(), inside);
      if (read_outside || id == graph.loss()) stage.outputs.push_back(output);
      if (read_outside) stage.gradient_outputs.push_back(output);
    }
  }
  for (auto* list : {&stage.inputs, &stage.outputs, &stage.parameters, &stage.buffers, &stage.gradient_outputs}) {
    sort_distinct(*list);
  }
  std::copy_if(stage.inputs.begin(), stage.inputs.end(), std::back_inserter(stage.gradient_inputs),
               [&](TensorId id) { return graph.tensor(id).role == Role::activation; });
  return stage;
}

}  // namespace millrace
