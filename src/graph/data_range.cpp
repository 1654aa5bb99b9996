// Bounds of labels and of indices.
#include "graph/data_range.h"

#include <algorithm>

namespace millrace {

std::int64_t label_classes(const Graph& graph) {
  if (graph.loss() < 0) return 0;
  const Operator& loss = graph.op(graph.loss());
  if (loss.schema->name != "cross_entropy") return 0;
  return graph.tensor(loss.inputs[0]).shape.dims.back();
}

std::int64_t index_bound(const Graph& graph, TensorId input) {
  std::int64_t bound = 0;
  for (const OpId id : graph.consumers(input)) {
    const Operator& op = graph.op(id);
    if (op.schema->name != "embedding") continue;
    const std::int64_t vocabulary = op.attributes.integer("vocabulary");
    bound = bound == 0 ? vocabulary : std::min(bound, vocabulary);
  }
  return bound;
}

}  // namespace millrace
