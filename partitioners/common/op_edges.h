// Edges between operators, each pair once, in compressed rows: what orders and searches walk along.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace millrace::partitioners {

/// For each operator others, ascending, each once.
struct OpEdges {
  std::vector<std::size_t> start;  ///< one more than operators
  std::vector<OpId> ends;

  std::span<const OpId> of(OpId op) const {
    const auto at = static_cast<std::size_t>(op);
    return {ends.data() + start[at], start[at + 1] - start[at]};
  }
};

/// Operators that read an output of each operator. O(edges log edges of an operator).
OpEdges successors(const Graph& graph);

/// The same edges from their other ends: operators whose outputs each operator reads.
OpEdges predecessors(const OpEdges& successors);

}  // namespace millrace::partitioners
