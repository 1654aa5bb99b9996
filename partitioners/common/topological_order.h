// Orders of a graph's operators in which every contiguous cut is acyclic (METHODS 6, order A).
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"
#include "partitioners/common/op_edges.h"

namespace millrace::partitioners {

/// Operators in an order that respects all edges.
using Order = std::vector<OpId>;

/// Which of the operators that are ready comes next in Kahn's algorithm; ties to the lower number.
enum class TieBreak : std::uint8_t {
  depth_first,        ///< one that became ready last: keeps branches together; O(V + E)
  last_branch_first,  ///< likewise, but of branches that become ready together the one with the highest number
  fewest_live_bytes,  ///< the one after which the fewest bytes wait for a reader
  longest_path        ///< the one with the most operators behind it in a row
};

Order topological_order(const Graph& graph, const OpEdges& successors, TieBreak tie_break);
Order topological_order(const Graph& graph, TieBreak tie_break);

/// All different orders that the tie-breaks give, in their order above; of large graphs without last_branch_first.
std::vector<Order> topological_orders(const Graph& graph, const OpEdges& successors);
std::vector<Order> topological_orders(const Graph& graph);

}  // namespace millrace::partitioners
