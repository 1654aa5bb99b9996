// For tests: every plan of the class that dp searches, judged by the evaluator.
#pragma once

#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "partitioners/common/topological_order.h"
#include "plan/evaluator.h"
#include "plan/objective.h"

namespace millrace::testing_support {

/// All cuts of an order (after whole items) × devices of each kind for each stage × recomputation of each stage where
/// the problem says automatic. Equal pipelines take their devices in blocks; devices of other kinds need one pipeline.
class BruteForce {
 public:
  BruteForce(const plan::Problem& problem, int pipelines)
      : problem_(problem), pipelines_(pipelines), evaluate_(problem) {
    const cluster::Cluster& cluster = *problem.cluster;
    for (int device = 0; device < problem.devices_per_pipeline(pipelines); ++device) {
      std::size_t kind = 0;
      while (kind < kinds_.size() && !(cluster.device(kinds_[kind].front()) == cluster.device(device))) ++kind;
      if (kind == kinds_.size()) kinds_.emplace_back();
      kinds_[kind].push_back(device);
    }
  }

  /// The best feasible candidate of all calls so far; none: nothing fits.
  const std::optional<plan::Candidate>& best(const partitioners::Order& order, std::vector<std::size_t> ends = {}) {
    if (ends.empty()) {
      for (std::size_t end = 1; end <= order.size(); ++end) ends.push_back(end);
    }
    go(order, ends, 0, std::vector<std::size_t>(kinds_.size(), 0));
    return best_;
  }
  std::int64_t plans() const { return plans_; }

 private:
  void go(const partitioners::Order& order, const std::vector<std::size_t>& ends, std::size_t item,
          const std::vector<std::size_t>& used) {
    if (item == ends.size()) return judge(used);
    for (std::size_t next = item; next < ends.size(); ++next) {
      const std::size_t begin = item > 0 ? ends[item - 1] : 0;
      std::vector<OpId> ops(order.begin() + static_cast<std::ptrdiff_t>(begin),
                            order.begin() + static_cast<std::ptrdiff_t>(ends[next]));
      std::sort(ops.begin(), ops.end());
      take(used, 0, {}, [&](const std::vector<std::size_t>& after, const std::vector<int>& devices) {
        Stage stage;
        stage.ops = ops;
        stage.devices = devices;
        stages_.push_back(stage);
        go(order, ends, next + 1, after);
        stages_.pop_back();
      });
    }
  }

  // Every number of devices of each kind, at least one in all.
  void take(std::vector<std::size_t> used, std::size_t kind, const std::vector<int>& devices,
            const std::function<void(const std::vector<std::size_t>&, const std::vector<int>&)>& then) {
    if (kind == kinds_.size()) {
      if (!devices.empty()) then(used, devices);
      return;
    }
    std::vector<int> longer = devices;
    for (;;) {
      take(used, kind + 1, longer, then);
      if (used[kind] == kinds_[kind].size()) return;
      longer.push_back(kinds_[kind][used[kind]++]);
    }
  }

  void judge(const std::vector<std::size_t>& used) {
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      if (used[kind] != kinds_[kind].size()) return;
    }
    if (problem_.stages && static_cast<std::size_t>(*problem_.stages) != stages_.size()) return;
    const bool choose = problem_.recompute == plan::Recompute::automatic;
    for (unsigned mask = 0; mask < (choose ? 1U << stages_.size() : 1U); ++mask) {
      ++plans_;
      plan::Candidate candidate{plan(mask), {}};
      candidate.report = evaluate_.evaluate(candidate.plan);
      if (!candidate.report.feasible) continue;
      if (!best_ || better(candidate.report, best_->report)) best_ = std::move(candidate);
    }
  }

  bool better(const plan::PlanReport& a, const plan::PlanReport& b) const {
    const double x = plan::value_of(problem_.objective, a), y = plan::value_of(problem_.objective, b);
    if (x != y) return problem_.objective == plan::Objective::memory_efficiency ? x > y : x < y;
    return a.iteration_time_s < b.iteration_time_s;
  }

  Plan plan(unsigned recompute) const {
    const std::vector<double> speeds = plan::device_speeds(problem_);
    Plan plan;
    plan.model = problem_.graph->name();
    plan.graph_digest = problem_.graph->digest();
    plan.schedule = problem_.schedule;
    const int block = problem_.devices_per_pipeline(pipelines_);
    for (int p = 0; p < pipelines_; ++p) {
      Pipeline pipeline;
      pipeline.share = 1.0 / pipelines_;
      pipeline.micro_batches = problem_.micro_batches;
      pipeline.stages = stages_;
      for (std::size_t s = 0; s < stages_.size(); ++s) {
        Stage& stage = pipeline.stages[s];
        double sum = 0;
        for (int& device : stage.devices) {
          device += p * block;
          sum += speeds[static_cast<std::size_t>(device)];
        }
        for (const int device : stage.devices) stage.shares.push_back(speeds[static_cast<std::size_t>(device)] / sum);
        if ((recompute >> s) & 1U) stage.recompute = stage.ops;
      }
      plan.pipelines.push_back(std::move(pipeline));
    }
    return plan;
  }

  const plan::Problem& problem_;
  int pipelines_;
  plan::ClosedFormEvaluator evaluate_;
  std::vector<std::vector<int>> kinds_;  // devices of the first pipeline
  std::vector<Stage> stages_;
  std::optional<plan::Candidate> best_;
  std::int64_t plans_ = 0;
};

}  // namespace millrace::testing_support
