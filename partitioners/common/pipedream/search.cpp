// Cuts one order first; its value is the limit under which all prefixes are searched, or those near the best cuts.
#include "partitioners/common/pipedream/search.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "partitioners/common/pipedream/family_search.h"
#include "partitioners/common/pipedream/item_orders.h"
#include "plan/published.h"

namespace millrace::partitioners {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kFewestPrefixes = 24;  // prefixes of the search that no deadline stops
constexpr std::size_t kMostOnOneLevel = 6000;
constexpr std::size_t kMostOnTwoLevels = 1200;  // each prefix has a table of its own
constexpr std::size_t kMostPlain = 2000;        // above it, merging free layers makes the search shorter
constexpr std::size_t kMostSome = 6000;
constexpr std::size_t kMostAround = 1000;  // of each cut
constexpr int kMostRounds = 20;
constexpr double kGain = 1e-4;  // relative: what another round is worth

class PipeDreamSearch {
 public:
  PipeDreamSearch(const plan::Problem& problem, Clock::time_point deadline)
      : problem_(problem),
        deadline_(deadline),
        layers_(plan::layer_figures(problem)),
        levels_(plan::machine_levels(problem)),
        memory_(plan::equal_devices(problem).memory_bytes),
        plain_(layer_network(layers_, Merge::none, memory_.has_value())) {}

  PipedreamPlan run() {
    best_.value = kNever;
    best_.bound = plan::bound_pipedream(problem_);
    if (plain_.items.empty()) return std::move(best_);
    const std::vector<std::vector<int>> orders = item_orders(*problem_.graph, plain_);
    consider(plain_, cheapest_prefixes(plain_, orders[0], kFewestPrefixes), Clock::time_point::max());
    consider(plain_, cheapest_prefixes(plain_, orders[0], two_levels() ? 200 : 500), deadline_);
    if (auto all = Prefixes::all(plain_.readers, two_levels() ? kMostOnTwoLevels : kMostPlain, deadline_)) {
      consider(plain_, *all, deadline_);
      if (!best_.late) best_.bound = best_.value;
      return std::move(best_);
    }
    const LayerNetwork merged = layer_network(layers_, Merge::free_layers, memory_.has_value());
    if (auto all = Prefixes::all(merged.readers, two_levels() ? kMostOnTwoLevels : kMostOnOneLevel, deadline_)) {
      consider(merged, *all, deadline_);
      bound_by_parking(merged, *all);
      return std::move(best_);
    }
    if (plain_.items.size() * (orders.size() + 2) > kMostSome) return std::move(best_);
    Prefixes prefixes = Prefixes::some(plain_.readers, orders);
    std::vector<std::size_t> cuts = consider(plain_, prefixes, deadline_);
    for (int round = 0; round < kMostRounds && !cuts.empty() && !best_.late; ++round) {
      const double before = best_.value;
      Prefixes nearer = Prefixes::around(plain_.readers, prefixes, cuts, kMostAround);
      cuts = consider(plain_, nearer, deadline_);
      prefixes = std::move(nearer);
      if (best_.value > before * (1 - kGain)) break;
    }
    return std::move(best_);
  }

 private:
  bool two_levels() const { return levels_.size() > 1; }

  // Merging loses only plans that hold machines on stages without cost.
  void bound_by_parking(const LayerNetwork& merged, const Prefixes& all) {
    FamilySearch search({&merged, &all, levels_, memory_, true}, deadline_);
    const double value = search.below(best_.value).value;
    best_.late = best_.late || search.late();
    if (!best_.late) best_.bound = std::max(best_.bound, std::min(best_.value, value));
  }

  std::vector<int> devices_of(const PlacedStep& placed) const {
    const cluster::Cluster& cluster = *problem_.cluster;
    std::vector<std::vector<int>> nodes(two_levels() ? cluster.nodes().size() : 1);
    for (int device = 0; device < cluster.size(); ++device) {
      nodes[two_levels() ? static_cast<std::size_t>(cluster.node_of(device)) : 0].push_back(device);
    }
    std::vector<int> devices;
    for (int node = placed.first_node; node < placed.first_node + placed.nodes; ++node) {
      const auto first = nodes[static_cast<std::size_t>(node)].begin() + placed.first_device;
      devices.insert(devices.end(), first, first + placed.step.machines);
    }
    return devices;
  }

  // The prefixes between the stages of a better cut; none where there is no better one.
  std::vector<std::size_t> consider(const LayerNetwork& network, const Prefixes& prefixes, Clock::time_point deadline) {
    FamilySearch search({&network, &prefixes, levels_, memory_, false}, deadline);
    const FamilyCut cut = search.below(best_.value);
    best_.late = best_.late || search.late();
    std::vector<std::size_t> cuts;
    if (!(cut.value < best_.value)) return cuts;
    best_.value = cut.value;
    std::vector<int> stage_of(network.items.size(), 0);
    best_.devices.clear();
    for (std::size_t s = 0; s < cut.steps.size(); ++s) {
      const LevelStep& step = cut.steps[s].step;
      best_.devices.push_back(devices_of(cut.steps[s]));
      if (s > 0) cuts.push_back(step.from);
      for (std::size_t item = 0; item < stage_of.size(); ++item) {
        const bool before = prefixes.has(step.from, static_cast<int>(item));
        if (!before && prefixes.has(step.to, static_cast<int>(item))) stage_of[item] = static_cast<int>(s);
      }
    }
    best_.stages = stage_ops(network, layers_, stage_of);
    return cuts;
  }

  const plan::Problem& problem_;
  Clock::time_point deadline_;
  plan::LayerFigures layers_;
  std::vector<plan::Level> levels_;
  std::optional<double> memory_;
  LayerNetwork plain_;
  PipedreamPlan best_;
};

}  // namespace

PipedreamPlan pipedream_search(const plan::Problem& problem, Clock::time_point deadline) {
  return PipeDreamSearch(problem, deadline).run();
}

}  // namespace millrace::partitioners
