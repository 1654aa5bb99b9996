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

#include <fmt/format.h>

#include "base/errors.h"
#include "base/limits.h"
#include "base/text.h"
#include "plan/bounds.h"
#include "planner/fold_plan.h"
#include "planner/order_costs.h"
#include "planner/schedule_rules.h"
#include "planner/simulated.h"
#include "program/lowering.h"
#include "schedules/registry.h"
#include "sim/simulate.h"

namespace millrace::planner {
namespace {

// A variant costs memory: it has to be at least so much faster.
constexpr double kWorthwhile = 0.99;

std::string percent(double seconds, double of) { return fmt::format("{:+.1f} %", 100 * (seconds / of - 1)); }

// A program of a candidate, simulated.
struct Trial {
  Plan plan;
  sim::Simulation run;
  ProgramMemory memory;
  bool reduces = false;  // gradients, over several ranks

  double seconds() const { return run.iteration_time.value(); }
};

class Ranker {
 public:
  Ranker(const plan::Problem& problem, std::vector<plan::Candidate>& candidates, const SimulatedRanking& settings)
      : problem_(problem),
        candidates_(candidates),
        settings_(settings),
        costs_(costs_of(*problem.cost, *problem.cluster, problem.sizes.real, settings.options)),
        counted_(*problem.graph, problem.sizes),
        bytes_(counted_),
        start_(std::chrono::steady_clock::now()) {}

  SimulatedCounts run() {
    std::vector<double> bounds;
    for (const plan::Candidate& candidate : candidates_) bounds.push_back(bound(candidate));
    scores_.resize(candidates_.size());
    choices_.resize(candidates_.size());
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      scores_[i] = {2, value(candidates_[i].report, candidates_[i].report.iteration_time_s)};
    }
    for (const std::size_t i : order(bounds)) judge(i, bounds[i]);
    sort();
    settle_first();
    settle_memory();
    if (!choices_.empty()) counts_.choices = std::move(choices_.front());
    return counts_;
  }

 private:
  // 0: simulated; 1: cannot win; 2: not simulated; 3: it cannot be run. Then the value, less is better.
  using Score = std::pair<int, double>;

  // What is minimised: seconds, or seconds · bytes for memory efficiency, whose throughput is of one batch.
  double value(const plan::PlanReport& report, double seconds) const {
    if (problem_.objective != plan::Objective::memory_efficiency) return seconds;
    return seconds * static_cast<double>(report.peak_memory_bytes);
  }

  double value(const Trial& trial) const {
    if (problem_.objective != plan::Objective::memory_efficiency) return trial.seconds();
    return trial.seconds() * static_cast<double>(trial.memory.peak());
  }

  // No variant of the candidate has a better value. A device holds one micro-batch of its fullest stage at the least,
  // without it where it may be computed again.
  double bound(const plan::Candidate& candidate) const {
    const double seconds = least_iteration_time(candidate).value();
    if (problem_.objective != plan::Objective::memory_efficiency) return seconds;
    std::int64_t least = 0;
    for (const plan::StageReport& row : candidate.report.stages) {
      const std::int64_t one = row.memory.activations.value() / std::max<std::int64_t>(1, row.live_micro_batches);
      const bool again = problem_.recompute == plan::Recompute::automatic;
      least = std::max(least, row.memory_bytes - row.memory.activations.value() + (again ? 0 : one));
    }
    return seconds * static_cast<double>(least);
  }

  // From the lowest bound up, so that most of what cannot win is never simulated; before them the best of each schedule
  // by closed form, which are near the best and rule others out.
  std::vector<std::size_t> order(const std::vector<double>& bounds) const {
    std::map<std::string, std::size_t> best;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (!candidates_[i].report.feasible) continue;
      const auto [known, is_new] = best.try_emplace(candidates_[i].plan.schedule, i);
      if (!is_new && scores_[i] < scores_[known->second]) known->second = i;
    }
    std::vector<std::size_t> order(candidates_.size());
    std::iota(order.begin(), order.end(), 0);
    const auto later = [&](std::size_t i) {
      const auto known = best.find(candidates_[i].plan.schedule);
      return known == best.end() || known->second != i;
    };
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(later(a), bounds[a]) < std::pair(later(b), bounds[b]);
    });
    return order;
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
    std::optional<Trial> winner;
    try {
      winner = simulate(with_quick_order(candidate.plan));
    } catch (const InvalidInput& refusal) {
      ++counts_.refused;
      scores_[index].first = 3;
      candidate.report.feasible = false;
      candidate.report.why_not = refusal.what();
      return;
    }
    if (!fits(winner->memory)) {
      scores_[index].first = 3;
      candidate.report.feasible = false;
      candidate.report.why_not =
          fmt::format("its order keeps {} on the fullest rank", format(Bytes(winner->memory.peak())));
      take_memory(winner->memory, candidate.report);
      return;
    }
    vary(*winner, choices_[index]);
    take(*winner, candidate);
    scores_[index] = {0, value(*winner)};
    best_ = std::min(best_, scores_[index].second);
  }

  // Equal parts of the plan once. Rows of the timeline are of no use here.
  Trial simulate(Plan plan) {
    const bool shards = problem_.sizes.shard_optimizer;  // by the number of owners, which folding changes
    const FoldedPlan folded =
        shards ? unfolded(plan, problem_.batch)
               : fold_plan(plan, *problem_.graph, problem_.batch, *problem_.cluster, costs_, settings_.options);
    LoweringOptions lowering{.hiding = settings_.hiding, .shard_optimizer = shards};
    if (problem_.tensor != nullptr) lowering.parts = problem_.tensor->parts(folded.plan);
    const Program program =
        lower(*problem_.graph, folded.plan, fitted_order(folded.plan, problem_), folded.batch, lowering);
    sim::Options options = settings_.options;
    options.iterations += 2 * program.overlap;
    ++counts_.simulated;
    const bool reduces = std::any_of(program.buckets.begin(), program.buckets.end(),
                                     [](const Bucket& bucket) { return bucket.owners.size() > 1; });
    sim::Simulation run = sim::simulate(*problem_.graph, program, folded_costs(costs_, folded), options);
    return {std::move(plan), unfold(std::move(run), folded), unfold(program_memory(program, bytes_), folded), reduces};
  }

  bool fits(const ProgramMemory& memory) const {
    for (std::size_t rank = 0; rank < memory.ranks.size(); ++rank) {
      const std::optional<Bytes> limit = problem_.memory_of(static_cast<int>(rank));
      if (limit && memory.ranks[rank].total() > *limit) return false;
    }
    return true;
  }

  // One choice after the other, each from the best so far: the plan itself comes first, and a variant has to be better.
  void vary(Trial& winner, std::vector<std::string>& lines) {
    if (problem_.recompute == plan::Recompute::automatic) {
      std::vector<std::pair<std::string, Plan>> others;
      if (recomputes(winner.plan)) others.emplace_back("none", with_recompute(winner.plan, false));
      if (problem_.objective == plan::Objective::memory_efficiency && !recomputes(winner.plan)) {
        others.emplace_back("all stages", with_recompute(winner.plan, true));
      }
      choose("recompute", recomputes(winner.plan) ? "where needed" : "none", std::move(others), winner, lines);
    }
    if (winner.reduces) {
      std::vector<std::pair<std::string, Plan>> others;
      for (const Bytes size : settings_.bucket_sizes) {
        if (size == winner.plan.bucket_size) continue;
        others.emplace_back(format(size), winner.plan);
        others.back().second.bucket_size = size;
      }
      choose("bucket size", format(winner.plan.bucket_size), std::move(others), winner, lines);
    }
    if (winner.reduces) {
      choose("deferred weight gradients", std::to_string(deferred_weights(winner.plan)),
             with_deferred_weights(winner.plan, settings_.deferred_weights), winner, lines);
    }
    if (settings_.deeper_warmup) {
      std::vector<std::pair<std::string, Plan>> others;
      if (auto deeper = deepened(winner.plan)) others.emplace_back("twice its depth", std::move(*deeper));
      choose("warm-up", "the schedule's own", std::move(others), winner, lines);
    }
    // At the same memory limits, so whatever is better by simulation is better.
    choose("order", "searched", with_fixed_orders(winner.plan), winner, lines, 1.0);
  }

  // Keeps the best of the plan at hand and the others, and notes what was compared.
  void choose(const std::string& what, std::string own, std::vector<std::pair<std::string, Plan>> others, Trial& winner,
              std::vector<std::string>& lines, double worthwhile = kWorthwhile) {
    std::string chosen = own;
    std::vector<std::pair<std::string, double>> tried{{std::move(own), winner.seconds()}};
    for (auto& [name, plan] : others) {
      try {
        Trial trial = simulate(std::move(plan));
        if (!fits(trial.memory)) continue;
        tried.emplace_back(name, trial.seconds());
        if (value(trial) >= value(winner) * worthwhile) continue;
        winner = std::move(trial);
        chosen = name;
      } catch (const InvalidInput&) {
        ++counts_.refused;
      }
    }
    if (tried.size() == 1) return;
    std::string line = fmt::format("{}: {}", what, chosen);
    for (const auto& [name, seconds] : tried) {
      if (name != chosen) line += fmt::format("; {}: {} of time", name, percent(seconds, winner.seconds()));
    }
    lines.push_back(std::move(line));
  }

  static bool recomputes(const Plan& plan) {
    return std::any_of(plan.pipelines.begin(), plan.pipelines.end(), [](const Pipeline& pipeline) {
      return std::any_of(pipeline.stages.begin(), pipeline.stages.end(),
                         [](const Stage& stage) { return !stage.recompute.empty(); });
    });
  }

  Plan with_recompute(Plan plan, bool all) const {
    for (Pipeline& pipeline : plan.pipelines) {
      for (Stage& stage : pipeline.stages) stage.recompute = all ? stage.ops : OpList{};
    }
    return plan;
  }

  // Twice the depth of a chain of stages (METHODS 2, measured fact 2).
  static std::optional<Plan> deepened(const Plan& plan) {
    if ((schedules::by_name(plan.schedule).capabilities & schedules::kTakesWarmup) == 0) return std::nullopt;
    Plan deeper = plan;
    for (Pipeline& pipeline : deeper.pipelines) {
      if (!pipeline.warmup.empty() || pipeline.stages.size() < 2) return std::nullopt;
      const auto last = static_cast<std::int64_t>(pipeline.stages.size()) - 1;
      for (std::int64_t s = 0; s <= last; ++s) {
        pipeline.warmup.push_back(static_cast<int>(std::min(pipeline.micro_batches, 2 * (last - s))));
      }
    }
    return deeper;
  }

  void take(const Trial& trial, plan::Candidate& candidate) {
    const std::map<std::string, std::string> given = std::move(candidate.plan.schedule_options);
    candidate.plan = trial.plan;
    forget_quick_order(candidate.plan, given);
    plan::PlanReport& report = candidate.report;
    take_memory(trial.memory, report);
    take_times(trial.run, problem_.batch, report);
    if (problem_.objective == plan::Objective::throughput) judged_value(report, report.iteration_time_s);
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

  void sort() {
    std::vector<std::size_t> order(candidates_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores_[a] < scores_[b]; });
    std::vector<plan::Candidate> sorted;
    std::vector<std::vector<std::string>> choices;
    for (const std::size_t i : order) {
      sorted.push_back(std::move(candidates_[i]));
      choices.push_back(std::move(choices_[i]));
    }
    candidates_ = std::move(sorted);
    choices_ = std::move(choices);
    std::sort(scores_.begin(), scores_.end());
  }

  // Schedules that search for their order were searched quickly: the plan that is used gets all of it, unless what was
  // found quickly is better by simulation, which knows more than the search.
  void settle_first() {
    if (candidates_.empty() || scores_.front().first != 0) return;
    plan::Candidate& first = candidates_.front();
    Plan quick = with_quick_order(first.plan);
    if (quick == first.plan) return;
    Trial full = simulate(first.plan);
    if (fits(full.memory) && value(full) <= scores_.front().second) {
      take(full, first);
    } else {
      first.plan = std::move(quick);
    }
  }

  // Those that were asked for come first, in their order; those whose devices have too little come last.
  void settle_memory() {
    if (!settings_.device_memory) return;
    std::size_t fitting = 0;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (scores_[i].first == 3) continue;
      if (fitting == settings_.asked) {
        scores_[i].first += 4;
        continue;
      }
      plan::Candidate& candidate = candidates_[i];
      std::optional<ProgramMemory> memory = settings_.device_memory(candidate.plan);
      if (memory && !fits(*memory)) memory = recomputed_instead(candidate, *memory);
      if (memory) take_memory(*memory, candidate.report);
      if (memory && !fits(*memory)) {
        const Bytes needed(memory->peak());
        counts_.least_refused_memory = std::min(needed, counts_.least_refused_memory.value_or(needed));
        candidate.report.feasible = false;
        candidate.report.why_not = fmt::format("its devices hold {} on the fullest rank", format(needed));
        scores_[i] = {9, 0};
        continue;
      }
      ++fitting;
      plan::PlanReport& report = candidate.report;
      report.memory_efficiency =
          report.throughput_samples_per_s / (static_cast<double>(report.peak_memory_bytes) / kGiB);
      if (problem_.objective != plan::Objective::memory_efficiency) continue;
      judged_value(report, report.memory_efficiency);
      scores_[i].second = value(report, report.iteration_time_s);
    }
    sort();
  }

  // Where the problem leaves it open and the plan keeps too much, the plan that computes all stages again.
  ProgramMemory recomputed_instead(plan::Candidate& candidate, const ProgramMemory& memory) {
    if (problem_.recompute != plan::Recompute::automatic) return memory;
    Plan again = with_recompute(candidate.plan, true);
    if (again == candidate.plan) return memory;
    std::optional<ProgramMemory> less = settings_.device_memory(again);
    if (!less || !fits(*less)) return memory;
    take(simulate(std::move(again)), candidate);
    return *less;
  }

  const plan::Problem& problem_;
  std::vector<plan::Candidate>& candidates_;
  const SimulatedRanking& settings_;
  sim::SimCosts costs_;
  plan::AnalyticBytes counted_;
  KnownFootprints bytes_;
  std::chrono::steady_clock::time_point start_;
  std::vector<Score> scores_;
  std::vector<std::vector<std::string>> choices_;                                      // of each candidate
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
