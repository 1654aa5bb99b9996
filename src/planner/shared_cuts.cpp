// Compares what partitioners see of two schedules, and gives plans another schedule's name and memory.
#include "planner/shared_cuts.h"

#include <algorithm>
#include <utility>

#include "plan/closed_form.h"
#include "planner/least_memory.h"

namespace millrace::planner {
namespace {

// What is kept enters a cut by limits, by the objective, and where a last stage is run again only if it keeps more than
// one micro-batch.
bool memory_counts(const plan::Problem& problem) {
  return problem.objective == plan::Objective::memory_efficiency || problem.recompute == plan::Recompute::all ||
         least_limit(problem).has_value();
}

plan::Candidate under(const plan::Candidate& known, const std::string& schedule, plan::Evaluator& evaluate) {
  plan::Candidate candidate{known.plan, {}};
  candidate.plan.schedule = schedule;
  candidate.report = evaluate.evaluate(candidate.plan);
  plan::PlanReport& report = candidate.report;
  report.partitioner = known.report.partitioner;
  report.order = known.report.order;
  report.certificate = known.report.certificate;
  report.stopped_by = known.report.stopped_by;
  report.planning_time_s = known.report.planning_time_s;
  report.bound = known.report.bound;
  report.bound_source = known.report.bound_source;
  report.optimality_gap = known.report.optimality_gap;
  return candidate;
}

}  // namespace

bool cut_alike(const plan::Problem& problem, const std::string& schedule) {
  const plan::ScheduleTraits& a = plan::schedule_traits(problem.schedule);
  const plan::ScheduleTraits& b = plan::schedule_traits(schedule);
  if (a.iteration_time != b.iteration_time || a.splits_bottleneck != b.splits_bottleneck) return false;
  if (a.kept_together != b.kept_together || a.shared_fill != b.shared_fill) return false;
  return !memory_counts(problem) || (a.live == b.live && a.adapts_to_memory == b.adapts_to_memory);
}

std::optional<plan::PlanSet> SharedCuts::find(const plan::Problem& problem, std::size_t number,
                                              plan::Evaluator& evaluate) const {
  const auto known = std::find_if(known_.begin(), known_.end(), [&](const Known& one) {
    return one.number == number && one.problem.micro_batches == problem.micro_batches &&
           cut_alike(one.problem, problem.schedule);
  });
  if (known == known_.end()) return std::nullopt;
  plan::PlanSet plans;
  for (const plan::Candidate& candidate : known->plans.candidates()) {
    plans.add(under(candidate, problem.schedule, evaluate));
  }
  plans.refusals() = known->plans.refusals();
  return plans;
}

void SharedCuts::keep(const plan::Problem& problem, std::size_t number, plan::PlanSet plans, Seconds took) {
  if (plans.candidates().empty()) return;  // its refusals may be in words of the schedule
  for (plan::Candidate& candidate : plans.candidates()) candidate.report.planning_time_s = took.value();
  known_.push_back({problem, number, std::move(plans)});
}

}  // namespace millrace::planner
