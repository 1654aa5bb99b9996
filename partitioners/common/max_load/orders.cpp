// Orders from the shared makers, as items; and the cheapest-cut order of the model itself.
#include "partitioners/common/max_load/orders.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "partitioners/common/cluster_order.h"
#include "partitioners/common/max_load/linear_cut.h"
#include "partitioners/common/topological_order.h"

namespace millrace::partitioners::max_load {
namespace {

constexpr auto kNoDeadline = std::chrono::steady_clock::time_point::max();

std::vector<Item> items_of(const Order& order) {
  std::vector<Item> items;
  items.reserve(order.size());
  for (const OpId op : order) items.push_back(static_cast<Item>(op));
  return items;
}

void add_new(std::vector<NamedOrder>& orders, std::string name, std::vector<Item> order) {
  const bool known =
      std::any_of(orders.begin(), orders.end(), [&](const NamedOrder& other) { return other.order == order; });
  if (!known) orders.push_back({std::move(name), std::move(order)});
}

// What taking an item adds to the seconds of transfers that cross the boundary behind it.
class Waiting {
 public:
  explicit Waiting(const Model& model) : model_(model), left_(model.transfers.size()), key_(model.size(), 0.0) {
    for (std::size_t t = 0; t < left_.size(); ++t) left_[t] = model.transfers[t].to.size() + 1;
    for (Item item = 0; item < model.size(); ++item) {
      for (const std::size_t t : model.touching[item]) key_[item] += change(t);
    }
  }
  double key(Item item) const { return key_[item]; }

  /// Ends of a transfer that are left, and with them what the others would change, go down.
  template <typename Changed>
  void take(Item item, const Changed& changed) {
    for (const std::size_t t : model_.touching[item]) {
      const double before = change(t);
      --left_[t];
      const double by = change(t) - before;
      if (by == 0) continue;
      const Transfer& transfer = model_.transfers[t];
      changed(transfer.from, by);
      for (const Item reader : transfer.to) changed(reader, by);
    }
  }
  void add(Item item, double by) { key_[item] += by; }

 private:
  // By the next end that is taken: the first opens the transfer, the last closes it.
  double change(std::size_t t) const {
    const Transfer& transfer = model_.transfers[t];
    if (left_[t] == transfer.to.size() + 1) return transfer.seconds;
    return left_[t] == 1 ? -transfer.seconds : 0.0;
  }

  const Model& model_;
  std::vector<std::size_t> left_;  // ends not taken yet, by transfer
  std::vector<double> key_;
};

}  // namespace

std::vector<Item> fewest_waiting_seconds(const Model& model) {
  Waiting waiting(model);
  std::vector<std::size_t> missing(model.size());
  std::set<std::pair<double, Item>> ready;
  const auto is_ready = [&](Item item) { return ready.count({waiting.key(item), item}) > 0; };
  for (Item item = 0; item < model.size(); ++item) {
    missing[item] = model.before[item].size();
    if (missing[item] == 0) ready.emplace(waiting.key(item), item);
  }
  std::vector<Item> order;
  order.reserve(model.size());
  while (!ready.empty()) {
    const Item item = ready.begin()->second;
    ready.erase(ready.begin());
    order.push_back(item);
    waiting.take(item, [&](Item other, double by) {
      const bool waits = is_ready(other);
      if (waits) ready.erase({waiting.key(other), other});
      waiting.add(other, by);
      if (waits) ready.emplace(waiting.key(other), other);
    });
    for (const Item after : model.after[item]) {
      if (--missing[after] == 0) ready.emplace(waiting.key(after), after);
    }
  }
  return order;
}

std::vector<Item> breadth_first(const Model& model) {
  std::vector<std::size_t> missing(model.size());
  std::vector<Item> order;
  order.reserve(model.size());
  for (Item item = 0; item < model.size(); ++item) {
    missing[item] = model.before[item].size();
    if (missing[item] == 0) order.push_back(item);
  }
  for (std::size_t at = 0; at < order.size(); ++at) {
    for (const Item after : model.after[order[at]]) {
      if (--missing[after] == 0) order.push_back(after);
    }
  }
  return order;
}

std::vector<NamedOrder> all_orders(const Model& model, const Graph& graph) {
  const OpEdges edges = successors(graph);
  std::vector<NamedOrder> orders;
  for (const Order& order : topological_orders(graph, edges)) add_new(orders, "topological", items_of(order));
  Model back = model;  // the same in reverse
  std::swap(back.before, back.after);
  for (const auto& make : {breadth_first, fewest_waiting_seconds}) {
    add_new(orders, "topological", make(model));
    std::vector<Item> order = make(back);
    std::reverse(order.begin(), order.end());
    add_new(orders, "topological", std::move(order));
  }
  std::vector<double> seconds;
  for (Item item = 0; item < model.size(); ++item) {
    seconds.push_back(std::isinf(model.accelerator_s[item]) ? model.cpu_s[item] : model.accelerator_s[item]);
  }
  const double most = 0.5 * std::accumulate(seconds.begin(), seconds.end(), 0.0) / model.devices();
  add_new(orders, "cluster", items_of(cluster_order(graph, edges, seconds, most).order));
  return orders;
}

LinearBest best_of_orders(const Model& model, const std::vector<NamedOrder>& orders,
                          std::chrono::steady_clock::time_point deadline) {
  constexpr std::size_t kQuickPlaces = 150;
  LinearBest best;
  best.load = std::numeric_limits<double>::infinity();
  const auto take = [&](const NamedOrder& order, Parts chain) {
    if (chain.empty()) return;
    best.load = max_load(model, chain);
    best.chain = std::move(chain);
    best.order = order.name;
  };
  // A first answer whatever the deadline; what is not below it need not be looked at.
  for (const NamedOrder& order : orders) {
    if (!best.chain.empty()) break;
    take(order, best_cut(model, order.order, best.load, kNoDeadline, kQuickPlaces));
  }
  for (const NamedOrder& order : orders) {
    best.late = std::chrono::steady_clock::now() > deadline;
    if (best.late) break;
    take(order, best_cut(model, order.order, best.load, deadline));
  }
  best.late = best.late || std::chrono::steady_clock::now() > deadline;
  return best;
}

}  // namespace millrace::partitioners::max_load
