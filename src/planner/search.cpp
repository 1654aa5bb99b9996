// Goes through schedules, micro-batches and partitioners, then sorts.
#include "planner/search.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "partitioners/registry.h"
#include "plan/explicit_stages.h"
#include "plan/published.h"
#include "planner/least_memory.h"
#include "planner/schedule_rules.h"
#include "planner/shared_cuts.h"
#include "planner/virtual_stages.h"
#include "schedules/registry.h"

namespace millrace::planner {
namespace {

class Search {
 public:
  Search(const Request& request, const MakeEvaluator& make_evaluator)
      : request_(request), make_evaluator_(make_evaluator) {}

  Ranking run() {
    const std::vector<std::int64_t> counts =
        request_.micro_batches.empty() ? automatic_micro_batches(request_.problem) : request_.micro_batches;
    std::vector<ScheduleChoice> schedules = request_.schedules;
    if (plan::is_published(request_.problem.objective)) schedules.resize(1);
    cells_left_ = schedules.size() * counts.size();
    used_.assign(request_.partitioners.size(), Seconds{});
    for (const ScheduleChoice& schedule : schedules) {
      for (const std::int64_t micro_batches : counts) {
        cell(schedule, micro_batches);
        --cells_left_;
      }
    }
    keep_best(request_.top);
    for (plan::Candidate& candidate : ranking_.plans) {
      if (late_.contains(candidate.report.partitioner)) candidate.report.stopped_by = "time";
    }
    if (!ranking_.plans.empty()) ranking_.least_memory.reset();
    return std::move(ranking_);
  }

 private:
  void cell(const ScheduleChoice& schedule, std::int64_t micro_batches) {
    plan::Problem problem = request_.problem;
    problem.schedule = schedule.name;
    schedule_options_ = written_options(schedule.name, schedule.options);
    problem.micro_batches = micro_batches;
    // What is given is not known to partitioners: they cut as if there were room for all.
    plan::Problem searched = problem;
    if (request_.recompute.kind == RecomputeMask::Kind::given) {
      if (!roomy_) roomy_ = without_limits(*problem.cluster);
      searched.cluster = &*roomy_;
      searched.memory_limit.reset();
      problem.recompute = plan::Recompute::automatic;
    }
    const std::unique_ptr<plan::Evaluator> evaluate = make_evaluator_(problem), search = make_evaluator_(searched);
    if (request_.explicit_stages) {
      plan::Problem shaped = searched;
      if (deals(problem)) shaped.stages = static_cast<int>(request_.explicit_stages->size());
      take(problem, *evaluate, "explicit", [&] {
        return cut(shaped, schedule, *search, [&](const plan::Problem& of, plan::Evaluator& judge, double) {
          return plan::explicit_stages(of, *request_.explicit_stages, judge);
        });
      });
    } else {
      for (std::size_t i = 0; i < request_.partitioners.size(); ++i) {
        const PartitionerChoice& choice = request_.partitioners[i];
        const partitioners::Entry& entry = partitioners::by_name(choice.name);
        if (!takes_part(entry)) continue;
        const config::Values options = share_of_time(choice.options, used_[i]);
        const bool shares = !deals(problem) && !searches_together(entry);
        std::optional<plan::PlanSet> own;
        const Seconds took = take(problem, *evaluate, choice.name, [&] {
          if (auto known = shares ? shared_.find(searched, i, *search) : std::nullopt) return std::move(*known);
          own = cut(searched, schedule, *search, [&](const plan::Problem& of, plan::Evaluator& judge, double part) {
            return entry.partition(of, part < 1 ? part_of_time(options, part) : options, judge);
          });
          return *own;
        });
        used_[i] += took;
        if (shares && own) shared_.keep(searched, i, std::move(*own), took);
        if (shares && !own) ++ranking_.shared_cuts;
      }
    }
    share_bounds();
    std::move(found_.begin(), found_.end(), std::back_inserter(ranking_.plans));
    found_.clear();
    // Few are shown: the others need not be held while the rest is searched.
    if (ranking_.plans.size() > 64 + 2 * request_.top) keep_best(request_.top);
  }

  using Cut = std::function<plan::PlanSet(const plan::Problem&, plan::Evaluator&, double part)>;

  // Objectives of published planners know no schedule.
  static bool deals(const plan::Problem& problem) {
    return deals_stages(schedules::by_name(problem.schedule)) && !plan::is_published(problem.objective);
  }

  plan::PlanSet cut(const plan::Problem& problem, const ScheduleChoice& schedule, plan::Evaluator& evaluate,
                    const Cut& cutter) {
    if (!deals(problem)) return cutter(problem, evaluate, 1.0);
    return virtual_stage_plans(problem, schedule.options, evaluate, [&](const plan::Problem& of, double part) {
      return cutter(of, *make_evaluator_(of), part);
    });
  }

  bool searches_together(const partitioners::Entry& entry) const {
    return request_.problem.exchange != nullptr && (entry.capabilities & partitioners::kAllRanks) != 0;
  }

  // Other ranks help those that search together; the plans of the rest are rank 0's to find.
  bool takes_part(const partitioners::Entry& entry) const {
    const plan::Exchange* exchange = request_.problem.exchange;
    return exchange == nullptr || exchange->rank() == 0 || searches_together(entry);
  }

  // A time limit is for all that a partitioner does here: each cell gets an equal part of what is left of it.
  config::Values share_of_time(config::Values options, Seconds used) const {
    if (!options.has("time_limit")) return options;
    const double left = std::max(0.0, (options.duration("time_limit") - used).value());
    options.set("time_limit", Seconds(left / static_cast<double>(cells_left_)));
    return options;
  }

  static config::Values part_of_time(config::Values options, double part) {
    if (options.has("time_limit")) options.set("time_limit", Seconds(options.duration("time_limit").value() * part));
    return options;
  }

  // Returns how long it took.
  Seconds take(const plan::Problem& problem, plan::Evaluator& evaluate, const std::string& partitioner,
               const std::function<plan::PlanSet()>& partition) {
    const auto start = std::chrono::steady_clock::now();
    plan::PlanSet plans = partition();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    for (plan::Candidate& candidate : plans.candidates()) {
      candidate.report.planning_time_s += seconds;
      if (candidate.report.stopped_by == "time") late_.insert(partitioner);
      if (!plan::is_published(problem.objective)) {
        candidate.plan.schedule_options.insert(schedule_options_.begin(), schedule_options_.end());
        std::string rule = warm_up(candidate.plan);
        if (rule.empty()) rule = broken_rule(candidate.plan);
        if (!rule.empty()) {
          plans.refuse(candidate.report.pipelines, static_cast<int>(candidate.plan.pipelines.front().stages.size()),
                       plan::Refusal::not_offered, rule);
          continue;
        }
        const bool masked = apply(request_.recompute, problem, evaluate, candidate);
        if (masked || !request_.warmup.empty()) judge_again(candidate, evaluate);
      }
      if (candidate.report.feasible) {
        found_.push_back(std::move(candidate));
      } else {
        too_large(problem, candidate, plans);
      }
    }
    for (plan::Refused& refused : plans.refusals()) {
      if (refused.reason == plan::Refusal::time_limit) late_.insert(partitioner);
      refused.partitioner = partitioner;
      refused.schedule = problem.schedule;
      refused.micro_batches = problem.micro_batches;
      ranking_.refusals.push_back(std::move(refused));
    }
    return Seconds(seconds);
  }

  // \returns why not.
  std::string warm_up(Plan& plan) const {
    for (Pipeline& pipeline : plan.pipelines) {
      if (request_.warmup.empty()) break;
      if (request_.warmup.size() != pipeline.stages.size()) {
        return fmt::format("plan.warmup has {} entries, the plan has {} stages; plan.stages fixes their number",
                           request_.warmup.size(), pipeline.stages.size());
      }
      pipeline.warmup = request_.warmup;
    }
    return "";
  }

  // What partitioners do not know changes what their plans need.
  static void judge_again(plan::Candidate& candidate, plan::Evaluator& evaluate) {
    plan::PlanReport report = evaluate.evaluate(candidate.plan);
    report.partitioner = candidate.report.partitioner;
    report.order = candidate.report.order;
    report.certificate = candidate.report.certificate;
    report.stopped_by = candidate.report.stopped_by;
    report.planning_time_s = candidate.report.planning_time_s;
    candidate.report = std::move(report);
  }

  void too_large(const plan::Problem& problem, const plan::Candidate& candidate, plan::PlanSet& plans) {
    const plan::PlanReport& report = candidate.report;
    const Bytes peak(report.peak_memory_bytes);
    if (over_a_limit(problem, report) && (!ranking_.least_memory || peak < ranking_.least_memory->limit)) {
      ranking_.least_memory = LeastMemory{peak, false, fullest_stage(report)};
    }
    plans.refuse(report.pipelines, static_cast<int>(candidate.plan.pipelines.front().stages.size()),
                 plan::Refusal::memory_exceeded, report.why_not);
  }

  // A published planner's rules may refuse a plan for more than its memory.
  static bool over_a_limit(const plan::Problem& problem, const plan::PlanReport& report) {
    for (int device = 0; device < problem.cluster->size(); ++device) {
      const auto limit = problem.memory_of(device);
      if (limit && report.peak_memory_bytes > limit->value()) return true;
    }
    return false;
  }

  // A bound that one partitioner proves holds for the plans of all. A plan below it is of a kind that the proof does
  // not cover, such as a device with several stages, and keeps its own.
  void share_bounds() {
    const plan::Objective objective = request_.problem.objective;
    const bool more_is_better = objective == plan::Objective::memory_efficiency;
    const plan::PlanReport* tightest = nullptr;
    const auto tighter = [&](double a, double b) { return more_is_better ? a < b : a > b; };
    for (const plan::Candidate& candidate : found_) {
      const plan::PlanReport& report = candidate.report;
      if (report.bound && (tightest == nullptr || tighter(*report.bound, *tightest->bound))) tightest = &report;
    }
    if (tightest == nullptr) return;
    const double bound = *tightest->bound;
    const std::string source = tightest->bound_source;
    for (plan::Candidate& candidate : found_) {
      plan::PlanReport& report = candidate.report;
      if (!report.objective_value || !report.bound || !tighter(bound, *report.bound)) continue;
      const double own = plan::bound_at(objective, *report.objective_value, bound);
      const auto gap = plan::optimality_gap(objective, *report.objective_value, own);
      if (!gap || *gap < 0) continue;
      report.bound = own;
      report.bound_source = source;
      report.optimality_gap = gap;
    }
  }

  // Sorts, drops plans that were found before under another name, and keeps the first `most`; of each schedule the
  // first of its part, where closed forms, which know schedules unequally well, do not decide in the end.
  void keep_best(std::size_t most) {
    const plan::Objective objective = request_.problem.objective;
    std::stable_sort(ranking_.plans.begin(), ranking_.plans.end(),
                     [&](const auto& a, const auto& b) { return plan::better(objective, a, b); });
    const std::size_t part = request_.judged_again ? std::max<std::size_t>(1, most / request_.schedules.size()) : most;
    std::map<std::string, std::size_t> of_schedule;
    std::vector<plan::Candidate> kept, others;
    for (plan::Candidate& candidate : ranking_.plans) {
      if (kept.size() == most) break;
      const auto same = [&](const plan::Candidate& other) { return other.plan == candidate.plan; };
      if (std::any_of(kept.begin(), kept.end(), same) || std::any_of(others.begin(), others.end(), same)) continue;
      const bool within = of_schedule[candidate.plan.schedule]++ < part;
      (within ? kept : others).push_back(std::move(candidate));
    }
    for (std::size_t i = 0; i < others.size() && kept.size() < most; ++i) kept.push_back(std::move(others[i]));
    std::stable_sort(kept.begin(), kept.end(),
                     [&](const auto& a, const auto& b) { return plan::better(objective, a, b); });
    ranking_.plans = std::move(kept);
  }

  const Request& request_;
  const MakeEvaluator& make_evaluator_;
  std::vector<plan::Candidate> found_;  // in the cell at hand
  std::map<std::string, std::string> schedule_options_;
  std::size_t cells_left_ = 0;             // with that one
  std::vector<Seconds> used_;              // by each partitioner
  std::optional<cluster::Cluster> roomy_;  // the devices without limits
  SharedCuts shared_;
  std::set<std::string> late_;  // that the time limit ended in some cell: better plans may be left out
  Ranking ranking_;
};

}  // namespace

ScheduleChoice ScheduleChoice::of(const std::string& name) {
  return {name, config::defaults(schedules::by_name(name).options)};
}

std::unique_ptr<plan::Evaluator> closed_form(const plan::Problem& problem) {
  return std::make_unique<plan::ClosedFormEvaluator>(problem);
}

std::vector<std::int64_t> automatic_micro_batches(const plan::Problem& problem) {
  if (plan::is_published(problem.objective)) return {1};
  std::vector<std::int64_t> counts;
  const std::int64_t rows = problem.batch / problem.pipelines.value_or(1);
  for (std::int64_t count = 1; count <= std::max<std::int64_t>(1, rows); count *= 2) counts.push_back(count);
  const double work = static_cast<double>(problem.graph->size()) * problem.cluster->size();
  const auto most = static_cast<std::size_t>(std::max(1.0, kAutomaticWork / work));
  if (counts.size() <= most) return counts;
  std::vector<std::int64_t> fewer;
  for (std::size_t i = 0; i < most; ++i) fewer.push_back(counts[(2 * i + 1) * counts.size() / (2 * most)]);
  return fewer;
}

std::string fullest_stage(const plan::PlanReport& report) {
  const auto fullest = std::max_element(
      report.stages.begin(), report.stages.end(),
      [](const plan::StageReport& a, const plan::StageReport& b) { return a.memory_bytes < b.memory_bytes; });
  return fmt::format("stage {} of pipeline {}", fullest->index, fullest->pipeline);
}

Ranking plans_under(const Request& request, const MakeEvaluator& make_evaluator) {
  return Search(request, make_evaluator).run();
}

Ranking search(const Request& request, const MakeEvaluator& make_evaluator) {
  const plan::Exchange* exchange = request.problem.exchange;
  // Ranks that search together wait for each other: a graph that the objective cannot judge is refused on all, before.
  if (exchange != nullptr) plan::proven_bound(request.problem);
  const auto start = std::chrono::steady_clock::now();
  Ranking ranking = plans_under(request, make_evaluator);
  const Seconds took(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  if (ranking.least_memory && (exchange == nullptr || exchange->rank() == 0)) {
    ranking.least_memory = least_memory(request, *ranking.least_memory, took, make_evaluator);
  }
  return ranking;
}

std::string Ranking::why_not() const {
  if (!plans.empty()) return "";
  // Of one reason that is not memory, the first line tells all.
  const bool alike = std::all_of(refusals.begin(), refusals.end(), [&](const plan::Refused& refused) {
    return refused.reason == refusals.front().reason && refused.reason != plan::Refusal::memory_exceeded;
  });
  std::string text = alike && !least_memory ? "no plan" : "no plan fits";
  if (least_memory) {
    text += fmt::format("; the smallest memory that one fits in is {}{} ({} bytes) on every device, which {} needs",
                        least_memory->minimal ? "" : "at most ", format(least_memory->limit),
                        least_memory->limit.value(), least_memory->stage);
  }
  // Each reason once, with its first example.
  std::vector<plan::Refusal> told;
  for (const plan::Refused& refused : refusals) {
    if (std::find(told.begin(), told.end(), refused.reason) != told.end()) continue;
    told.push_back(refused.reason);
    text += fmt::format("{}{}: {}{}", alike ? ": " : "\n  ", refused.partitioner, plan::text(refused.reason),
                        refused.detail.empty() ? "" : fmt::format(": {}", refused.detail));
  }
  return text;
}

}  // namespace millrace::planner
