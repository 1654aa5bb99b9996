// For each number of pipelines a bound by placement at its best, then the search over real ones below the best known
// plan.
#include "partitioners/common/dapple/search.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/limits.h"
#include "partitioners/common/dapple/labels.h"
#include "partitioners/common/pipedream/item_orders.h"
#include "partitioners/common/pipedream/layer_network.h"
#include "plan/published.h"

namespace millrace::partitioners {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostPrefixes = 1200;
constexpr std::size_t kFewest = 8;
constexpr std::size_t kMostOnOrder = 200;

class DappleSearch {
 public:
  DappleSearch(const plan::Problem& problem, Clock::time_point deadline)
      : problem_(problem),
        deadline_(deadline),
        layers_(plan::layer_figures(problem)),
        network_(layer_network(layers_, Merge::none, false)),
        scale_(plan::dapple_scale(problem, layers_.profile_batch)),
        devices_(problem.cluster->nodes().size()) {
    for (int device = 0; device < problem.cluster->size(); ++device) {
      devices_[static_cast<std::size_t>(problem.cluster->node_of(device))].push_back(device);
    }
    for (const std::vector<int>& server : devices_) capacities_.push_back(static_cast<int>(server.size()));
  }

  DapplePlan run() {
    best_.value = best_.bound = kNever;
    if (network_.items.empty()) return std::move(best_);
    const std::vector<int> order = item_orders(*problem_.graph, network_).front();
    const std::vector<std::size_t> whole{0, order.size()};
    cut(Prefixes::of_order(order, whole), Clock::time_point::max());
    cut(cheapest_prefixes(network_, order, kFewest), deadline_);  // a first value, so that much is dropped early
    if (auto all = Prefixes::all(network_.readers, kMostPrefixes, deadline_)) {
      cut(*all, deadline_);
      best_.bound = std::max(std::min(at_best_, best_.value), plan::bound_dapple(problem_));
      return std::move(best_);
    }
    network_ = layer_network(layers_, Merge::free_layers, false);
    if (auto all = Prefixes::all(network_.readers, kMostPrefixes, deadline_)) {
      cut(*all, deadline_);
    } else {
      network_ = layer_network(layers_, Merge::none, false);
      cut(cheapest_prefixes(network_, order, kMostOnOrder), deadline_);
    }
    best_.bound = plan::bound_dapple(problem_);
    return std::move(best_);
  }

 private:
  void cut(const Prefixes& prefixes, Clock::time_point deadline) {
    const PrefixFigures figures = prefix_figures(network_, prefixes);
    const Servers real(capacities_), at_best = Servers::at_best(capacities_);
    std::vector<std::pair<double, DappleQuestion>> questions;
    for (const int pipelines : problem_.pipeline_counts()) {
      const std::int64_t micro_batches = plan::dapple_micro_batches(problem_, pipelines);
      if (micro_batches < 1) continue;
      const DappleQuestion question{&prefixes, &figures, scale_, pipelines, micro_batches, problem_.stages};
      DappleLabels labels(question, at_best, deadline);
      labels.below(best_.value);
      best_.late = best_.late || labels.late();
      questions.emplace_back(labels.late() ? 0.0 : labels.value(), question);
    }
    std::stable_sort(questions.begin(), questions.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    at_best_ = questions.empty() ? kNever : questions.front().first;
    for (const auto& [least, question] : questions) {
      if (least >= best_.value) continue;
      DappleLabels labels(question, real, deadline);
      const std::vector<DappleLabel> stages = labels.below(best_.value);
      best_.late = best_.late || labels.late();
      if (!stages.empty()) take(question, stages, labels.value());
    }
  }

  void take(const DappleQuestion& question, const std::vector<DappleLabel>& stages, double value) {
    best_.value = value;
    best_.pipelines = question.pipelines;
    best_.micro_batches = question.micro_batches;
    std::vector<int> stage_of(network_.items.size(), 0);
    best_.devices.assign(static_cast<std::size_t>(question.pipelines), {});
    std::vector<std::size_t> used(devices_.size(), 0);
    std::size_t begin = 0;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      for (std::size_t item = 0; item < stage_of.size(); ++item) {
        const bool before = question.prefixes->has(begin, static_cast<int>(item));
        if (!before && question.prefixes->has(stages[s].prefix, static_cast<int>(item))) {
          stage_of[item] = static_cast<int>(s);
        }
      }
      begin = stages[s].prefix;
      deal(stages[s], used);
    }
    best_.stages = stage_ops(network_, layers_, stage_of);
  }

  // Devices of a stage: the next ones of each server, in runs for one pipeline after the other.
  void deal(const DappleLabel& stage, std::vector<std::size_t>& used) {
    std::vector<int> all;
    for (std::size_t server = 0; server < devices_.size(); ++server) {
      for (int i = 0; i < stage.placement.counts[server]; ++i) all.push_back(devices_[server][used[server]++]);
    }
    auto next = all.begin();
    for (auto& pipeline : best_.devices) {
      pipeline.emplace_back(next, next + stage.replicas);
      next += stage.replicas;
    }
  }

  const plan::Problem& problem_;
  Clock::time_point deadline_;
  plan::LayerFigures layers_;
  LayerNetwork network_;
  double scale_;
  std::vector<std::vector<int>> devices_;  // by server
  std::vector<int> capacities_;
  double at_best_ = kNever;  // of the last family: least latency with Servers::at_best
  DapplePlan best_;
};

}  // namespace

DapplePlan dapple_search(const plan::Problem& problem, Clock::time_point deadline) {
  return DappleSearch(problem, deadline).run();
}

}  // namespace millrace::partitioners
