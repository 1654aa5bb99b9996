// Collects readers of outputs, and turns rows around by counting.
#include "partitioners/common/op_edges.h"

#include <algorithm>

namespace millrace::partitioners {

OpEdges successors(const Graph& graph) {
  OpEdges edges;
  edges.start.reserve(static_cast<std::size_t>(graph.size()) + 1);
  edges.start.push_back(0);
  for (OpId op = 0; op < graph.size(); ++op) {
    const auto first = static_cast<std::ptrdiff_t>(edges.ends.size());
    const auto& outputs = graph.op(op).outputs;
    for (const TensorId output : outputs) {
      const auto readers = graph.consumers(output);
      edges.ends.insert(edges.ends.end(), readers.begin(), readers.end());
    }
    if (outputs.size() > 1) {  // the readers of one tensor are distinct and ascend
      std::sort(edges.ends.begin() + first, edges.ends.end());
      edges.ends.erase(std::unique(edges.ends.begin() + first, edges.ends.end()), edges.ends.end());
    }
    edges.start.push_back(edges.ends.size());
  }
  return edges;
}

OpEdges predecessors(const OpEdges& successors) {
  OpEdges edges;
  edges.start.assign(successors.start.size(), 0);
  edges.ends.resize(successors.ends.size());
  for (const OpId to : successors.ends) ++edges.start[static_cast<std::size_t>(to) + 1];
  for (std::size_t i = 1; i < edges.start.size(); ++i) edges.start[i] += edges.start[i - 1];
  std::vector<std::size_t> next(edges.start.begin(), edges.start.end() - 1);
  for (OpId from = 0; from + 1 < static_cast<OpId>(successors.start.size()); ++from) {
    for (const OpId to : successors.of(from)) edges.ends[next[static_cast<std::size_t>(to)]++] = from;
  }
  return edges;
}

}  // namespace millrace::partitioners
