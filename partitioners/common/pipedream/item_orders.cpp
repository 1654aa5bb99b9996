// Kahn's algorithm on items, by position in an order of operators.
#include "partitioners/common/pipedream/item_orders.h"

#include "partitioners/common/topological_order.h"

namespace millrace::partitioners {

std::vector<std::vector<int>> item_orders(const Graph& graph, const LayerNetwork& network) {
  std::vector<std::vector<int>> orders;
  for (const Order& order : topological_orders(graph)) {
    std::vector<double> keys(network.items.size(), 0);
    for (std::size_t i = order.size(); i-- > 0;) {
      const int item = network.item_of[static_cast<std::size_t>(order[i])];
      if (item >= 0) keys[static_cast<std::size_t>(item)] = static_cast<double>(i);
    }
    orders.push_back(order_by_key(network.readers, keys));
  }
  return orders;
}

}  // namespace millrace::partitioners
