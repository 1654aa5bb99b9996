// The linear relaxation and a greedy choice decide most questions; the rest goes through branch and bound.
#include "partitioners/common/piper/recompute_choice.h"

#include <algorithm>
#include <limits>

#include "base/limits.h"

namespace millrace::partitioners {
namespace {

constexpr int kMostNodes = 20000;

// Least cost of items whose savings reach a need. Items of equal saving are taken cheapest first, so only their number
// is branched on.
template <class Item>
class Knapsack {
 public:
  Knapsack(const std::vector<Item>& items, double best) : best_(best) {
    std::vector<Item> sorted = items;
    std::stable_sort(sorted.begin(), sorted.end(), [](const Item& a, const Item& b) {
      return a.saving != b.saving ? a.saving > b.saving : a.cost < b.cost;
    });
    for (const Item& item : sorted) {
      if (groups_.empty() || groups_.back().front().saving != item.saving) groups_.emplace_back();
      groups_.back().push_back(item);
    }
    // Groups with the best price first, so that good solutions come early.
    std::stable_sort(groups_.begin(), groups_.end(), [](const auto& a, const auto& b) {
      return a.front().cost * b.front().saving < b.front().cost * a.front().saving;
    });
    counts_.assign(groups_.size(), 0);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      for (const Item& item : groups_[g]) priced_.push_back({item.cost, item.saving, g});
    }
    std::stable_sort(priced_.begin(), priced_.end(),
                     [](const Priced& a, const Priced& b) { return a.cost * b.saving < b.cost * a.saving; });
  }

  void run(double need) { branch(0, need, 0); }
  double best() const { return best_; }
  bool complete() const { return nodes_ < kMostNodes; }
  const std::vector<Item>& chosen() const { return chosen_; }

 private:
  struct Priced {
    double cost = 0, saving = 0;
    std::size_t group = 0;
  };

  // Least cost by the linear relaxation over groups from `group` on.
  double relaxed(std::size_t group, double need) const {
    double cost = 0;
    for (const Priced& item : priced_) {
      if (need <= 0) return cost;
      if (item.group < group) continue;
      cost += item.cost * std::min(1.0, need / item.saving);
      need -= item.saving;
    }
    return need > 0 ? kNever : cost;
  }

  void branch(std::size_t group, double need, double cost) {
    if (need <= 0) {
      if (cost < best_) {
        best_ = cost;
        chosen_.clear();
        for (std::size_t g = 0; g < group; ++g) {
          chosen_.insert(chosen_.end(), groups_[g].begin(), groups_[g].begin() + counts_[g]);
        }
      }
      return;
    }
    if (group == groups_.size() || ++nodes_ >= kMostNodes || cost + relaxed(group, need) >= best_) return;
    const std::vector<Item>& items = groups_[group];
    // From as many as the need asks for down to none.
    std::size_t most = 0;
    double left = need, sum = cost;
    while (most < items.size() && left > 0) {
      left -= items[most].saving;
      sum += items[most].cost;
      ++most;
    }
    for (std::size_t count = most + 1; count-- > 0;) {
      counts_[group] = static_cast<std::ptrdiff_t>(count);
      branch(group + 1, left, sum);
      if (count == 0) break;
      left += items[count - 1].saving;
      sum -= items[count - 1].cost;
    }
  }

  double best_;
  std::vector<std::vector<Item>> groups_;
  std::vector<Priced> priced_;
  std::vector<std::ptrdiff_t> counts_;  // taken of each group on the way
  std::vector<Item> chosen_;
  int nodes_ = 0;
};

}  // namespace

PiperRecompute::PiperRecompute(const PiperStageCosts& costs, const Prefixes& prefixes, double memory_bytes)
    : costs_(costs), prefixes_(prefixes), memory_bytes_(memory_bytes) {}

std::size_t PiperRecompute::Hash::operator()(const Key& key) const {
  std::size_t hash = key.degree;
  for (const std::size_t part : {key.from, key.to, static_cast<std::size_t>(key.live)}) {
    hash = (hash ^ part) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  }
  return hash;
}

const PiperRecompute::Order& PiperRecompute::order(std::size_t degree, std::int64_t live) {
  const auto [place, added] = orders_.try_emplace({degree, live});
  Order& order = place->second;
  if (!added) return order;
  const std::vector<PiperChoice>& choices = costs_.choices(degree);
  for (std::size_t op = 0; op < choices.size(); ++op) {
    const double saving = choices[op].saved_a * static_cast<double>(live) + choices[op].saved_b;
    if (choices[op].has_other && saving > 0) {
      order.items.push_back({static_cast<OpId>(op), choices[op].extra_seconds, saving});
    }
  }
  std::stable_sort(order.items.begin(), order.items.end(),
                   [](const Item& a, const Item& b) { return a.cost * b.saving < b.cost * a.saving; });
  order.savings.assign(prefixes_.size(), 0);
  for (std::size_t prefix = 0; prefix < prefixes_.size(); ++prefix) {
    for (const Item& item : order.items) {
      if (prefixes_.has(prefix, item.op)) order.savings[prefix] += item.saving;
    }
  }
  return order;
}

std::vector<PiperRecompute::Item> PiperRecompute::items_of(const Order& order, std::size_t from, std::size_t to) const {
  std::vector<Item> items;
  for (const Item& item : order.items) {
    if (prefixes_.has(to, item.op) && !prefixes_.has(from, item.op)) items.push_back(item);
  }
  return items;
}

// Takes items in order of price until one closes the need; of those that could close it then, the cheapest does.
PiperRecompute::Solution PiperRecompute::bounds(const std::vector<Item>& items, double need,
                                                std::vector<OpId>* chosen) {
  Solution solution{.least = kNever, .found = kNever, .exact = false};
  double taken = 0;
  OpId closing = -1;
  for (const Item& item : items) {
    const bool closes = item.saving >= need;
    if (closes && solution.least == kNever) solution.least = taken + item.cost * need / item.saving;
    if (closes && taken + item.cost < solution.found) {
      solution.found = taken + item.cost;
      closing = item.op;
    }
    if (solution.least < kNever) continue;
    taken += item.cost;
    need -= item.saving;
    if (chosen != nullptr) chosen->push_back(item.op);
  }
  if (chosen != nullptr && closing >= 0) chosen->push_back(closing);
  return solution;
}

double PiperRecompute::extra_seconds(std::size_t degree, std::size_t from, std::size_t to, std::int64_t live,
                                     const PiperSegment& segment, double allowed) {
  const double need = this->need(segment, live);
  if (need <= 0) return 0;
  const Order& order = this->order(degree, live);
  if (order.savings[to] - order.savings[from] < need * (1 - 1e-12)) return kNever;
  const auto [place, added] = known_.try_emplace(Key{degree, from, to, live});
  Solution& solution = place->second;
  if (added) solution = bounds(items_of(order, from, to), need, nullptr);
  if (!solution.exact && solution.least <= allowed && solution.found > allowed) {
    solution.found = solution.least = solve(items_of(order, from, to), need, solution.found, nullptr);
    solution.exact = true;
  }
  return solution.least > allowed ? solution.least : solution.found;
}

double PiperRecompute::solve(const std::vector<Item>& items, double need, double found, std::vector<OpId>* chosen) {
  Knapsack<Item> knapsack(items, found);
  knapsack.run(need);
  exact_ = exact_ && knapsack.complete();
  if (chosen != nullptr && knapsack.best() < found) {
    chosen->clear();
    for (const Item& item : knapsack.chosen()) chosen->push_back(item.op);
  }
  return knapsack.best();
}

std::vector<OpId> PiperRecompute::others(std::size_t degree, std::size_t from, std::size_t to, std::int64_t live,
                                         const PiperSegment& segment) {
  std::vector<OpId> ops;
  const double need = this->need(segment, live);
  if (need <= 0) return ops;
  const std::vector<Item> items = items_of(order(degree, live), from, to);
  const Solution solution = bounds(items, need, &ops);
  if (solution.least < solution.found) solve(items, need, solution.found, &ops);
  std::sort(ops.begin(), ops.end());
  return ops;
}

}  // namespace millrace::partitioners
