// Goes through the candidates from the lowest bound up, so that most of what cannot win is never simulated.
#include "planner/simulated_ranking.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/limits.h"
#include "base/text.h"
#include "plan/bounds.h"
#include "planner/program_trials.h"
#include "planner/schedule_rules.h"
#include "planner/simulated.h"
#include "planner/work_ahead.h"
#include "schedules/registry.h"

namespace millrace::planner {
namespace {

// A variant costs memory: it has to be at least so much faster.
constexpr double kWorthwhile = 0.99;

std::string percent(double seconds, double of) { return fmt::format("{:+.1f} %", 100 * (seconds / of - 1)); }

// What came of a candidate, whatever the others are.
struct Judged {
  std::optional<Trial> winner;  // none: refused, or not looked at
  std::string why_not;
  std::vector<std::string> choices;
  std::vector<std::uint64_t> programs;  // in the order in which they were asked for
  std::size_t refused = 0;              // variants, too
};

class Ranker {
 public:
  Ranker(const plan::Problem& problem, std::vector<plan::Candidate>& candidates, const SimulatedRanking& settings)
      : problem_(problem), candidates_(candidates), settings_(settings), start_(std::chrono::steady_clock::now()) {
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    const std::size_t threads = std::min(settings.threads == 0 ? cores : settings.threads, candidates.size());
    for (std::size_t t = 0; t < std::max<std::size_t>(1, threads); ++t) {
      trials_.push_back(std::make_unique<ProgramTrials>(problem, settings.options, settings.hiding, known_));
    }
  }

  SimulatedCounts run() {
    std::vector<double> bounds;
    for (const plan::Candidate& candidate : candidates_) bounds.push_back(bound(candidate));
    scores_.resize(candidates_.size());
    choices_.resize(candidates_.size());
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      scores_[i] = {2, value(candidates_[i].report, candidates_[i].report.iteration_time_s)};
    }
    judge_all(order(bounds), bounds);
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
    return trial.seconds() * static_cast<double>(trial.result->memory.peak());
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

  // Threads look at candidates ahead of their turn; in turn it is decided as if each were looked at then: the best can
  // only have become better, so what is still to be looked at was.
  void judge_all(const std::vector<std::size_t>& order, const std::vector<double>& bounds) {
    WorkAhead<Judged> ahead(order.size(), trials_.size(), [&](std::size_t turn, std::size_t thread) {
      const std::size_t i = order[turn];
      if (!candidates_[i].report.feasible || bounds[i] >= best_ || late()) return Judged{};
      return look_at(candidates_[i].plan, *trials_[thread]);
    });
    for (std::size_t turn = 0; turn < order.size(); ++turn) {
      const std::size_t i = order[turn];
      take_turn(i, bounds[i], ahead.take(turn));
    }
  }

  bool late() const {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start_;
    return took.count() > settings_.time_limit.value();
  }

  void take_turn(std::size_t index, double bound, Judged judged) {
    plan::Candidate& candidate = candidates_[index];
    if (!candidate.report.feasible) return;
    if (bound >= best_) {
      scores_[index].first = 1;
      ++counts_.pruned;
      return;
    }
    for (const std::uint64_t program : judged.programs) count(program);
    counts_.refused += judged.refused;
    if (!judged.why_not.empty()) {
      scores_[index].first = 3;
      candidate.report.feasible = false;
      candidate.report.why_not = std::move(judged.why_not);
      if (judged.winner) take_memory(judged.winner->result->memory, candidate.report);
      return;
    }
    if (!judged.winner) return;
    choices_[index] = std::move(judged.choices);
    scores_[index] = {0, value(*judged.winner)};
    take(*judged.winner, candidate);
    best_ = std::min(best_.load(), scores_[index].second);
  }

  void count(std::uint64_t program) {
    ++counts_.simulated;
    if (!met_.insert(program).second) ++counts_.reused;
  }

  Judged look_at(const Plan& plan, ProgramTrials& trials) const {
    Judged judged;
    try {
      judged.winner = simulate(with_quick_order(plan), trials, judged);
    } catch (const InvalidInput& refusal) {
      ++judged.refused;
      judged.why_not = refusal.what();
      return judged;
    }
    if (!fits(judged.winner->result->memory)) {
      judged.why_not =
          fmt::format("its order keeps {} on the fullest rank", format(Bytes(judged.winner->result->memory.peak())));
      return judged;
    }
    vary(judged, trials);
    return judged;
  }

  static Trial simulate(Plan plan, ProgramTrials& trials, Judged& judged) {
    Trial trial = trials.of(std::move(plan));
    judged.programs.push_back(trial.program);
    return trial;
  }

  // After the others, on this thread.
  Trial simulate(Plan plan) {
    Trial trial = trials_.front()->of(std::move(plan));
    count(trial.program);
    return trial;
  }

  bool fits(const ProgramMemory& memory) const {
    for (std::size_t rank = 0; rank < memory.ranks.size(); ++rank) {
      const std::optional<Bytes> limit = problem_.memory_of(static_cast<int>(rank));
      if (limit && memory.ranks[rank].total() > *limit) return false;
    }
    return true;
  }

  // One choice after the other, each from the best so far: the plan itself comes first, and a variant has to be better.
  void vary(Judged& judged, ProgramTrials& trials) const {
    Trial& winner = *judged.winner;
    if (problem_.recompute == plan::Recompute::automatic) {
      std::vector<std::pair<std::string, Plan>> others;
      if (recomputes(winner.plan)) others.emplace_back("none", with_recompute(winner.plan, false));
      if (problem_.objective == plan::Objective::memory_efficiency && !recomputes(winner.plan)) {
        others.emplace_back("all stages", with_recompute(winner.plan, true));
      }
      choose("recompute", recomputes(winner.plan) ? "where needed" : "none", std::move(others), judged, trials);
    }
    if (winner.result->reduces) {
      std::vector<std::pair<std::string, Plan>> others;
      for (const Bytes size : settings_.bucket_sizes) {
        if (size == winner.plan.bucket_size) continue;
        others.emplace_back(format(size), winner.plan);
        others.back().second.bucket_size = size;
      }
      choose("bucket size", format(winner.plan.bucket_size), std::move(others), judged, trials);
      choose("deferred weight gradients", std::to_string(deferred_weights(winner.plan)),
             with_deferred_weights(winner.plan, settings_.deferred_weights), judged, trials);
    }
    if (settings_.deeper_warmup) {
      std::vector<std::pair<std::string, Plan>> others;
      if (auto deeper = deepened(winner.plan)) others.emplace_back("twice its depth", std::move(*deeper));
      choose("warm-up", "the schedule's own", std::move(others), judged, trials);
    }
    // At the same memory limits, so whatever is better by simulation is better.
    choose("order", "searched", with_fixed_orders(winner.plan), judged, trials, 1.0);
  }

  // Keeps the best of the plan at hand and the others, and notes what was compared.
  void choose(const std::string& what, std::string own, std::vector<std::pair<std::string, Plan>> others,
              Judged& judged, ProgramTrials& trials, double worthwhile = kWorthwhile) const {
    Trial& winner = *judged.winner;
    std::string chosen = own;
    std::vector<std::pair<std::string, double>> tried{{std::move(own), winner.seconds()}};
    for (auto& [name, plan] : others) {
      try {
        Trial trial = simulate(std::move(plan), trials, judged);
        if (!fits(trial.result->memory)) continue;
        tried.emplace_back(name, trial.seconds());
        if (value(trial) >= value(winner) * worthwhile) continue;
        winner = std::move(trial);
        chosen = name;
      } catch (const InvalidInput&) {
        ++judged.refused;
      }
    }
    if (tried.size() == 1) return;
    std::string line = fmt::format("{}: {}", what, chosen);
    for (const auto& [name, seconds] : tried) {
      if (name != chosen) line += fmt::format("; {}: {} of time", name, percent(seconds, winner.seconds()));
    }
    judged.choices.push_back(std::move(line));
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
    take_memory(trial.result->memory, report);
    take_times(trial.result->run, problem_.batch, report);
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
    if (fits(full.result->memory) && value(full) <= scores_.front().second) {
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
  KnownPrograms known_;
  std::vector<std::unique_ptr<ProgramTrials>> trials_;  // by thread
  std::set<std::uint64_t> met_;                         // programs
  std::chrono::steady_clock::time_point start_;
  std::vector<Score> scores_;
  std::vector<std::vector<std::string>> choices_;                                      // of each candidate
  std::map<std::pair<std::string, std::int64_t>, std::optional<plan::Bound>> bounds_;  // by schedule and micro-batches
  std::atomic<double> best_ = kNever;
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
