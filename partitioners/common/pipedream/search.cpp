// Cuts one order first; its value is the limit under which all prefixes are searched.
#include "partitioners/common/pipedream/search.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "partitioners/common/pipedream/item_orders.h"
#include "partitioners/common/pipedream/level_table.h"

namespace millrace::partitioners {
namespace {

using Clock = std::chrono::steady_clock;
using Window = LevelTable::Window;

constexpr double kNever = LevelTable::kNever;
constexpr std::size_t kMostOnOneLevel = 6000;
constexpr std::size_t kMostOnTwoLevels = 1200;  // each prefix has a table of its own
constexpr std::size_t kMostOnOrders = 4000;

// One family of prefixes to cut after.
struct Family {
  const LayerNetwork* network;
  Prefixes prefixes;
  bool proves;  // its best plan is the best of all
};

// A stage on the same `step.machines` devices of some nodes, from `first_device` of each on.
struct PlacedStep {
  LevelStep step;
  int first_node = 0;
  int nodes = 1;
  int first_device = 0;
};

struct Cut {
  std::vector<PlacedStep> steps;
  double value = kNever;
};

class FamilySearch {
 public:
  FamilySearch(const Family& family, const std::vector<plan::Level>& levels, std::optional<double> memory, double limit,
               Clock::time_point deadline)
      : family_(family),
        figures_(prefix_figures(*family.network, family.prefixes)),
        inner_{&family.prefixes, &figures_, levels[0], memory},
        outer_{&family.prefixes, &figures_, levels.back(), memory},
        limit_(limit),
        deadline_(deadline),
        last_(family.prefixes.size() - 1) {}

  // The best cut below the limit; its value is infinite where there is none.
  Cut run(bool two_levels) { return two_levels ? on_two() : on_one(); }
  bool late() const { return late_; }

 private:
  bool idle() const { return family_.network->idle >= 0; }
  double seconds(std::size_t from, std::size_t to) const { return figures_.seconds[to] - figures_.seconds[from]; }

  bool stop() {
    late_ = late_ || Clock::now() > deadline_;
    return late_;
  }

  std::vector<Window> windows(const LevelTable& table, double per_machine) const {
    std::vector<Window> all;
    for (std::size_t prefix = 0; prefix <= last_; ++prefix) {
      all.push_back(table.window(prefix, limit_, per_machine));
    }
    return all;
  }

  // Whether layers (from, to] can be one stage: everything before `to` that is in `from` comes first.
  bool nested(std::size_t from, std::size_t to) const { return family_.prefixes.within(from, to); }

  Cut on_one() {
    LevelTable table(inner_, 0, idle());
    const std::vector<Window> windows = this->windows(table, 1);
    const int machines = inner_.level.machines;
    for (std::size_t to = 1; to <= last_; ++to) {
      if (windows[to].empty()) continue;
      if (stop()) return {};
      for (std::size_t from = 0; from < to; ++from) {
        const int most = windows[to].most - windows[from].least;
        if (windows[from].empty() || seconds(from, to) >= limit_ * most || !nested(from, to)) continue;
        table.extend(from, to, seconds(from, to), limit_, windows[from], windows[to]);
      }
    }
    return {placed(table.trace(last_, machines), 0, 1), table.value(last_, machines)};
  }

  static std::vector<PlacedStep> placed(const std::vector<LevelStep>& steps, int first_node, int nodes) {
    std::vector<PlacedStep> all;
    int device = 0;
    for (const LevelStep& step : steps) {
      all.push_back({step, first_node, nodes, device});
      device += step.machines;
    }
    return all;
  }

  Cut on_two() {
    LevelTable table(outer_, 0, idle());
    const double per_machine = 1.0 / inner_.level.machines;
    const std::vector<Window> windows = this->windows(table, per_machine);
    const int machines = outer_.level.machines;
    for (std::size_t from = 0; from < last_; ++from) {
      if (windows[from].empty() || !reached(table, from, windows[from])) continue;
      std::vector<double> most(last_ + 1, -1);  // compute time that a stage to each prefix may have
      double highest = -1;
      for (std::size_t to = from + 1; to <= last_; ++to) {
        if (windows[to].empty() || !nested(from, to)) continue;
        most[to] = table.most_seconds(from, to, limit_, windows[from], windows[to]);
        highest = std::max(highest, most[to]);
      }
      const LevelTable nodes = inside(from, last_, highest, deadline_);
      if (stop()) break;
      for (std::size_t to = from + 1; to <= last_; ++to) {
        const double compute = most[to] > 0 ? nodes.value(to, inner_.level.machines) : kNever;
        if (compute < kNever) table.extend(from, to, compute, limit_, windows[from], windows[to]);
      }
    }
    return {flattened(table.trace(last_, machines)), table.value(last_, machines)};
  }

  static bool reached(const LevelTable& table, std::size_t prefix, Window window) {
    for (int m = window.least; m <= window.most; ++m) {
      if (table.value(prefix, m) < kNever) return true;
    }
    return false;
  }

  // The inner level for all stages that begin after `source` and end at `end` or before.
  LevelTable inside(std::size_t source, std::size_t end, double limit, Clock::time_point deadline) {
    LevelTable table(inner_, source, false);
    const int machines = inner_.level.machines;
    std::vector<std::size_t> starts{source};
    std::vector<Window> windows{{0, 0}};
    for (std::size_t to = source + 1; to <= end; ++to) {
      const double work = seconds(source, to);
      if (!(work < limit * machines) || !nested(source, to)) continue;
      if (Clock::now() > deadline) break;
      const Window window{std::max(1, static_cast<int>(work / limit)), machines};
      for (std::size_t i = 0; i < starts.size(); ++i) {
        const std::size_t from = starts[i];
        if (seconds(from, to) < limit * machines && nested(from, to)) {
          table.extend(from, to, seconds(from, to), limit, windows[i], window);
        }
      }
      starts.push_back(to);
      windows.push_back(window);
    }
    return table;
  }

  // Outer stages replaced by their inner ones, which are on all nodes of the outer stage.
  std::vector<PlacedStep> flattened(const std::vector<LevelStep>& outer) {
    std::vector<PlacedStep> all;
    const int machines = inner_.level.machines;
    int node = 0;
    for (const LevelStep& step : outer) {
      std::vector<LevelStep> inside_node{{step.from, step.to, machines}};
      if (step.from < step.to)
        inside_node = inside(step.from, step.to, kNever, Clock::time_point::max()).trace(step.to, machines);
      for (const PlacedStep& stage : placed(inside_node, node, step.machines)) all.push_back(stage);
      node += step.machines;
    }
    return all;
  }

  const Family& family_;
  PrefixFigures figures_;
  LevelQuestion inner_, outer_;
  double limit_;
  Clock::time_point deadline_;
  std::size_t last_;
  bool late_ = false;
};

class Search {
 public:
  Search(const plan::Problem& problem, Clock::time_point deadline)
      : problem_(problem),
        deadline_(deadline),
        layers_(plan::layer_figures(problem)),
        levels_(plan::machine_levels(problem)),
        memory_(plan::equal_devices(problem).memory_bytes),
        plain_(layer_network(layers_, Merge::none, memory_.has_value())) {}

  PipedreamPlan run() {
    if (plain_.items.empty()) return {.stages = {}, .devices = {}, .value = kNever};
    const std::vector<std::vector<int>> orders = item_orders(*problem_.graph, plain_);
    const bool two = levels_.size() > 1;
    consider({&plain_, cheapest_prefixes(plain_, orders[0], two ? 200 : 500), false});
    const std::size_t most = two ? kMostOnTwoLevels : kMostOnOneLevel;
    if (auto all = Prefixes::all(plain_.readers, std::min(most, kMostOnOneLevel / 3), deadline_)) {
      consider({&plain_, std::move(*all), true});
      return std::move(best_);
    }
    const LayerNetwork merged = layer_network(layers_, Merge::free_layers, memory_.has_value());
    if (auto all = Prefixes::all(merged.readers, most, deadline_)) {
      // Merging loses only stages without cost that hold machines; those that it offers first are as good on one level.
      consider({&merged, std::move(*all), !two && merged.idle >= 0});
      return std::move(best_);
    }
    if (plain_.items.size() * orders.size() <= kMostOnOrders) consider({&plain_, Prefixes::of_orders(orders), false});
    return std::move(best_);
  }

 private:
  std::vector<int> devices_of(const PlacedStep& placed) const {
    const cluster::Cluster& cluster = *problem_.cluster;
    std::vector<std::vector<int>> nodes(levels_.size() > 1 ? cluster.nodes().size() : 1);
    for (int device = 0; device < cluster.size(); ++device) {
      nodes[nodes.size() > 1 ? static_cast<std::size_t>(cluster.node_of(device)) : 0].push_back(device);
    }
    std::vector<int> devices;
    for (int node = placed.first_node; node < placed.first_node + placed.nodes; ++node) {
      const auto first = nodes[static_cast<std::size_t>(node)].begin() + placed.first_device;
      devices.insert(devices.end(), first, first + placed.step.machines);
    }
    return devices;
  }

  void consider(const Family& family) {
    FamilySearch search(family, levels_, memory_, best_.value, deadline_);
    const Cut cut = search.run(levels_.size() > 1);
    best_.late = best_.late || search.late();
    best_.proven = family.proves && !best_.late;
    if (!(cut.value < best_.value)) return;
    best_.value = cut.value;
    std::vector<int> stage_of(family.network->items.size(), 0);
    best_.devices.clear();
    for (std::size_t s = 0; s < cut.steps.size(); ++s) {
      best_.devices.push_back(devices_of(cut.steps[s]));
      for (std::size_t item = 0; item < stage_of.size(); ++item) {
        const bool before = family.prefixes.has(cut.steps[s].step.from, static_cast<int>(item));
        if (!before && family.prefixes.has(cut.steps[s].step.to, static_cast<int>(item))) {
          stage_of[item] = static_cast<int>(s);
        }
      }
    }
    best_.stages = stage_ops(*family.network, layers_, stage_of);
  }

  const plan::Problem& problem_;
  Clock::time_point deadline_;
  plan::LayerFigures layers_;
  std::vector<plan::Level> levels_;
  std::optional<double> memory_;
  LayerNetwork plain_;
  PipedreamPlan best_{.stages = {}, .devices = {}, .value = kNever};
};

}  // namespace

PipedreamPlan pipedream_search(const plan::Problem& problem, Clock::time_point deadline) {
  return Search(problem, deadline).run();
}

}  // namespace millrace::partitioners
