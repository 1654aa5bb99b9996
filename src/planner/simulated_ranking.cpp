// Goes through the candidates from the lowest bound up, so that most of what cannot win is never simulated.
#include "planner/simulated_ranking.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "plan/bounds.h"
#include "planner/simulated.h"
#include "program/lowering.h"
#include "program/stage_dag.h"
#include "schedules/registry.h"
#include "sim/simulate.h"

namespace millrace::planner {
namespace {

// A variant costs memory: it has to be at least so much faster.
constexpr double kWorthwhile = 0.99;
constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

class Ranker {
 public:
  Ranker(const plan::Problem& problem, std::vector<plan::Candidate>& candidates, const SimulatedRanking& settings)
      : problem_(problem),
        candidates_(candidates),
        settings_(settings),
        costs_(costs_of(*problem.cost, *problem.cluster, problem.sizes.real, settings.options)),
        start_(std::chrono::steady_clock::now()) {}

  SimulatedCounts run() {
    std::vector<std::size_t> order(candidates_.size());
    std::iota(order.begin(), order.end(), 0);
    std::vector<double> bounds;
    for (const plan::Candidate& candidate : candidates_) {
      bounds.push_back(value(candidate.report, least_iteration_time(candidate).value()));
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return bounds[a] < bounds[b]; });
    scores_.resize(candidates_.size());
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      scores_[i] = {2, value(candidates_[i].report, candidates_[i].report.iteration_time_s)};
    }
    for (const std::size_t i : order) judge(i, bounds[i]);
    return sort();
  }

 private:
  // 0: simulated; 1: cannot win; 2: not simulated. Then the value, less is better.
  using Score = std::pair<int, double>;

  // What is minimised: seconds, or seconds · bytes for memory efficiency, whose throughput is of one batch.
  double value(const plan::PlanReport& report, double seconds) const {
    if (problem_.objective != plan::Objective::memory_efficiency) return seconds;
    return seconds * static_cast<double>(report.peak_memory_bytes);
  }

  void judge(std::size_t index, double bound) {
    plan::Candidate& candidate = candidates_[index];
    if (!candidate.report.feasible) return;
    if (bound >= best_) {
      scores_[index].first = 1;
      ++counts_.pruned;
      return;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start_;
    if (took.count() > settings_.time_limit.value()) return;
    std::optional<Plan> winner;
    sim::Simulation fastest;
    for (Plan& variant : variants(candidate)) {
      try {
        const Program program =
            lower(*problem_.graph, variant, schedules::compute_order(variant, make_stage_dag(*problem_.graph, variant)),
                  problem_.batch, {.hiding = settings_.hiding});
        sim::Options options = settings_.options;
        options.iterations += program.overlap;
        sim::Simulation run = sim::simulate(*problem_.graph, program, costs_, options);
        ++counts_.simulated;
        if (winner && run.iteration_time > fastest.iteration_time * kWorthwhile) continue;
        fastest = std::move(run);
        winner = std::move(variant);
      } catch (const InvalidInput&) {
        ++counts_.refused;
      }
    }
    if (!winner) return;
    candidate.plan = std::move(*winner);
    take(fastest, candidate);
    scores_[index] = {0, value(candidate.report, candidate.report.iteration_time_s)};
    best_ = std::min(best_, scores_[index].second);
  }

  // The plan itself comes first: a variant has to be better.
  std::vector<Plan> variants(const plan::Candidate& candidate) const {
    std::vector<Plan> plans{candidate.plan};
    for (const Bytes size : settings_.bucket_sizes) {
      if (size == candidate.plan.bucket_size) continue;
      plans.push_back(candidate.plan);
      plans.back().bucket_size = size;
    }
    if (settings_.deeper_warmup) deepen(candidate, plans);
    return plans;
  }

  void deepen(const plan::Candidate& candidate, std::vector<Plan>& plans) const {
    const schedules::Entry& schedule = schedules::by_name(candidate.plan.schedule);
    if ((schedule.capabilities & schedules::kTakesWarmup) == 0) return;
    Plan deeper = candidate.plan;
    for (std::size_t p = 0; p < deeper.pipelines.size(); ++p) {
      Pipeline& pipeline = deeper.pipelines[p];
      if (!pipeline.warmup.empty() || pipeline.stages.size() < 2) return;
      const auto last = static_cast<std::int64_t>(pipeline.stages.size()) - 1;
      for (std::int64_t s = 0; s <= last; ++s) {
        pipeline.warmup.push_back(static_cast<int>(std::min(pipeline.micro_batches, 2 * (last - s))));
      }
    }
    for (const plan::StageReport& row : candidate.report.stages) {
      const Pipeline& pipeline = deeper.pipelines[static_cast<std::size_t>(row.pipeline)];
      const std::int64_t warmup = pipeline.warmup[static_cast<std::size_t>(row.index)];
      const std::int64_t live = std::min(pipeline.micro_batches, warmup + 1);
      const std::int64_t more = live - row.live_micro_batches;
      const std::int64_t each = row.memory.activations.value() / std::max<std::int64_t>(1, row.live_micro_batches);
      for (const int device : row.devices) {
        const std::optional<Bytes> limit = problem_.memory_of(device);
        if (limit && row.memory_bytes + more * each > limit->value()) return;
      }
    }
    plans.push_back(std::move(deeper));
  }

  void take(const sim::Simulation& run, plan::Candidate& candidate) {
    plan::PlanReport& report = candidate.report;
    report.iteration_time_s = run.iteration_time.value();
    report.makespan_s = run.makespan.value();
    report.throughput_samples_per_s = static_cast<double>(problem_.batch) / report.iteration_time_s;
    report.bubble_fraction = run.bubble_fraction;
    report.hidden_communication = {run.hidden(sim::Traffic::p2p), run.hidden(sim::Traffic::gradients),
                                   run.hidden(sim::Traffic::tensor)};
    if (problem_.objective == plan::Objective::throughput) judged_value(report, report.iteration_time_s);
    // A deeper warm-up keeps more micro-batches.
    std::int64_t peak = 0;
    for (plan::StageReport& row : report.stages) {
      const Pipeline& pipeline = candidate.plan.pipelines[static_cast<std::size_t>(row.pipeline)];
      if (!pipeline.warmup.empty()) {
        const std::int64_t each = row.memory.activations.value() / std::max<std::int64_t>(1, row.live_micro_batches);
        const std::int64_t warmup = pipeline.warmup[static_cast<std::size_t>(row.index)];
        row.live_micro_batches = std::min(pipeline.micro_batches, warmup + 1);
        row.memory.activations = Bytes(each * row.live_micro_batches);
        row.memory_bytes = row.memory.total().value();
      }
      peak = std::max(peak, row.memory_bytes);
    }
    report.peak_memory_bytes = std::max(report.peak_memory_bytes, peak);
    report.memory_efficiency = report.throughput_samples_per_s / (static_cast<double>(report.peak_memory_bytes) / kGiB);
    if (problem_.objective == plan::Objective::memory_efficiency) judged_value(report, report.memory_efficiency);
  }

  // What is proven of closed forms need not hold in simulated time: the bound is one that holds for any judge.
  void judged_value(plan::PlanReport& report, double value) {
    report.objective_value = value;
    report.bound.reset();
    report.bound_source.clear();
    report.optimality_gap.reset();
    const auto [known, is_new] = bounds_.try_emplace({report.schedule, report.micro_batches});
    if (is_new) {
      plan::Problem problem = problem_;
      problem.schedule = report.schedule;
      problem.micro_batches = report.micro_batches;
      known->second = plan::proven_bound(problem, plan::Judge::measured);
    }
    if (!known->second) return;
    const double bound = plan::bound_at(problem_.objective, value, known->second->value);
    const auto gap = plan::optimality_gap(problem_.objective, value, bound);
    if (!gap || *gap < 0) return;  // a plan of another class, such as devices with several stages
    report.bound = bound;
    report.bound_source = known->second->source;
    report.optimality_gap = gap;
  }

  SimulatedCounts sort() {
    std::vector<std::size_t> order(candidates_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores_[a] < scores_[b]; });
    std::vector<plan::Candidate> sorted;
    for (const std::size_t i : order) sorted.push_back(std::move(candidates_[i]));
    candidates_ = std::move(sorted);
    return counts_;
  }

  const plan::Problem& problem_;
  std::vector<plan::Candidate>& candidates_;
  const SimulatedRanking& settings_;
  sim::SimCosts costs_;
  std::chrono::steady_clock::time_point start_;
  std::vector<Score> scores_;
  std::map<std::pair<std::string, std::int64_t>, std::optional<plan::Bound>> bounds_;  // by schedule and micro-batches
  double best_ = std::numeric_limits<double>::infinity();
  SimulatedCounts counts_;
};

}  // namespace

Seconds least_iteration_time(const plan::Candidate& candidate) {
  double least = 0;
  std::map<int, double> busy;  // by device
  for (const plan::StageReport& row : candidate.report.stages) {
    const Pipeline& pipeline = candidate.plan.pipelines[static_cast<std::size_t>(row.pipeline)];
    // The stage's time is that of the longest micro-batch on the fullest replica; a row takes no less in a shorter one
    // (cost/cost_model.h), and no replica's rows can all be fewer than their part of the pipeline's.
    const double rows = std::floor(pipeline.share * static_cast<double>(candidate.report.batch));
    const double longest = std::ceil(rows / static_cast<double>(pipeline.micro_batches));
    const double share = *std::max_element(row.shares.begin(), row.shares.end());
    const double fullest = std::max(1.0, std::ceil(longest * share));
    const double part = rows / static_cast<double>(row.shares.size());
    const double all = (row.forward_s + row.backward_s) * part / fullest;
    for (const int device : row.devices) least = std::max(least, busy[device] += all);
  }
  return Seconds(least);
}

SimulatedCounts rank_by_simulation(const plan::Problem& problem, std::vector<plan::Candidate>& candidates,
                                   const SimulatedRanking& settings) {
  if (problem.objective != plan::Objective::throughput && problem.objective != plan::Objective::memory_efficiency) {
    return {};
  }
  return Ranker(problem, candidates, settings).run();
}

}  // namespace millrace::planner
