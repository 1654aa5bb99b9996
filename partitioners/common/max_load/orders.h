// The orders that are cut for max_load, and the best cut of all of them.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "partitioners/common/max_load/model.h"

namespace millrace::partitioners::max_load {

struct NamedOrder {
  std::string name;  ///< "topological", "cluster"
  std::vector<Item> order;
};

/// Orders A and B of METHODS 6, and for this objective more of kind A: breadth first; of the items that are ready, the
/// one after which the fewest seconds of transfers wait for a reader; and the same two from the last items back.
/// \pre items of `model` are the operators of `graph`.
std::vector<NamedOrder> all_orders(const Model& model, const Graph& graph);

/// The best chain over several orders.
struct LinearBest {
  Parts chain;  ///< empty: none fits, or none was found in time
  double load = 0;
  std::string order;
  bool late = false;
};

/// \pre there is an order.
LinearBest best_of_orders(const Model& model, const std::vector<NamedOrder>& orders,
                          std::chrono::steady_clock::time_point deadline);

/// Kahn's order by least waiting transfer seconds, ties to the lower item.
std::vector<Item> fewest_waiting_seconds(const Model& model);
/// Kahn's order, first come, first served.
std::vector<Item> breadth_first(const Model& model);

}  // namespace millrace::partitioners::max_load
