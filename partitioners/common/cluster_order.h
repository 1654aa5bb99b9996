// Order B of METHODS 6: branches of a graph one after the other, and what lies between two cut nodes in one piece.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "partitioners/common/op_edges.h"
#include "partitioners/common/topological_order.h"

namespace millrace::partitioners {

/// An order cut into items: runs of operators that stay together. Every run of a topological order is convex, so every
/// cut between items is acyclic.
struct ClusterOrder {
  Order order;
  std::vector<std::size_t> item_ends;  ///< ascending; positions in the order; the last is its size
};

/// `costs`: of each operator (seconds, or any other unit). Non-sequential subgraphs of at most `most_item_cost` become
/// one item; larger ones are emitted branch by branch, branches with much cost for the bytes on their border first
/// (METHODS 6: most_item_cost = 0.5 · total / stages). Linear in the graph; branches nested deeper than 64 levels, and
/// subgraphs that have neither cut nodes nor separate branches, stay in depth-first order.
ClusterOrder cluster_order(const Graph& graph, const OpEdges& successors, std::span<const double> costs,
                           double most_item_cost);

/// Operators through which every path from the graph's first to its last operators passes, in topological order.
std::vector<OpId> cut_nodes(const Graph& graph, const OpEdges& successors);

}  // namespace millrace::partitioners
