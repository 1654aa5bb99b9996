// Kahn by keys, and cuts.
#include "partitioners/common/fm/starts.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace millrace::partitioners::fm {
namespace {

constexpr double kReaches[]{0.02, 0.1, 0.3};  // of orders that keep something of a topological one

}  // namespace

Order decode(const OpEdges& successors, std::span<const std::int32_t> keys) {
  std::vector<std::int32_t> waits(keys.size(), 0);
  for (const OpId end : successors.ends) ++waits[static_cast<std::size_t>(end)];
  using Item = std::pair<std::int32_t, OpId>;
  std::priority_queue<Item, std::vector<Item>, std::greater<>> ready;
  for (std::size_t op = 0; op < keys.size(); ++op) {
    if (waits[op] == 0) ready.emplace(keys[op], static_cast<OpId>(op));
  }
  Order order;
  order.reserve(keys.size());
  while (!ready.empty()) {
    const OpId op = ready.top().second;
    ready.pop();
    order.push_back(op);
    for (const OpId next : successors.of(op)) {
      if (--waits[static_cast<std::size_t>(next)] == 0) ready.emplace(keys[static_cast<std::size_t>(next)], next);
    }
  }
  return order;
}

Keys positions(const Order& order) {
  Keys keys(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    keys[static_cast<std::size_t>(order[i])] = static_cast<std::int32_t>(i);
  return keys;
}

Keys random_keys(std::size_t size, Draws& draws) {
  Keys keys(size);
  for (std::int32_t& key : keys) key = draws.below(size);
  return keys;
}

Keys shaken_keys(const Order& order, double reach, Draws& draws) {
  Keys keys = positions(order);
  const double most = reach * static_cast<double>(order.size());
  for (std::int32_t& key : keys) key += static_cast<std::int32_t>(std::lround(most * (2 * draws.uniform() - 1)));
  return keys;
}

Ends equal_time_ends(const Machine& machine, const Order& order) {
  // The first profile stands for all: capacities hold what devices differ in.
  const Times& times = machine.times();
  const auto weight = [&](OpId op) {
    return static_cast<double>(times.forward[static_cast<std::size_t>(op)] +
                               times.backward[static_cast<std::size_t>(op)]);
  };
  double total = 0, capacity = 0;
  for (const OpId op : order) total += weight(op);
  for (int s = 0; s < machine.stages(); ++s) capacity += machine.capacity(s);
  Ends ends;
  double sum = 0, target = 0;
  std::size_t end = 0;
  for (int s = 0; s < machine.stages(); ++s) {
    target += total * machine.capacity(s) / capacity;
    // An operator belongs to the stage in which the middle of its time falls.
    while (end < order.size() && sum + weight(order[end]) / 2 <= target) sum += weight(order[end++]);
    ends.push_back(static_cast<std::int32_t>(end));
  }
  repair(ends, order.size());
  return ends;
}

Ends random_ends(std::size_t size, int stages, Draws& draws) {
  Ends ends;
  for (int s = 0; s < stages; ++s) ends.push_back(draws.below(size));
  repair(ends, size);
  return ends;
}

Ends shaken_ends(const Ends& ends, Draws& draws) {
  Ends moved = ends;
  const std::int32_t size = ends.back(), most = size / (2 * static_cast<std::int32_t>(ends.size()));
  for (std::int32_t& end : moved) end += draws.below(static_cast<std::size_t>(2 * most) + 1) - most;
  moved.back() = size;
  repair(moved, static_cast<std::size_t>(size));
  return moved;
}

void repair(Ends& ends, std::size_t size) {
  std::sort(ends.begin(), ends.end());
  ends.back() = static_cast<std::int32_t>(size);
  std::int32_t least = 1, most = ends.back();
  for (std::int32_t& end : ends) {
    end = std::max(end, least);
    least = end + 1;
  }
  for (std::size_t s = ends.size(); s-- > 0; --most) {
    ends[s] = std::min(ends[s], most);
    most = ends[s];
  }
}

StageOf divided(const Order& order, const Ends& ends) {
  StageOf stage_of(order.size());
  std::size_t at = 0;
  for (std::size_t s = 0; s < ends.size(); ++s) {
    for (; at < static_cast<std::size_t>(ends[s]); ++at) {
      stage_of[static_cast<std::size_t>(order[at])] = static_cast<std::int32_t>(s);
    }
  }
  return stage_of;
}

Start random_start(const Machine& machine, const OpEdges& successors, std::span<const Order> orders, Draws& draws) {
  const auto kind = static_cast<std::size_t>(draws.below(std::size(kReaches) + 1));
  const std::size_t size = orders[0].size();
  if (kind == std::size(kReaches)) {
    Keys keys = random_keys(size, draws);
    return {std::move(keys), random_ends(size, machine.stages(), draws)};
  }
  const Order& order = orders[static_cast<std::size_t>(draws.below(orders.size()))];
  Keys keys = shaken_keys(order, kReaches[kind], draws);
  const Ends ends = equal_time_ends(machine, decode(successors, keys));
  return {std::move(keys), shaken_ends(ends, draws)};
}

}  // namespace millrace::partitioners::fm
