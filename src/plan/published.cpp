// Chooses the formula of an objective.
#include "plan/published.h"

#include <stdexcept>

namespace millrace::plan {

bool is_published(Objective objective) { return objective >= Objective::max_load; }

bool is_published(const PlanReport& report) {
  return !report.objective.empty() && is_published(objective_by_name(report.objective));
}

Judgement judge(const Plan& plan, const Problem& problem) {
  switch (problem.objective) {
    case Objective::max_load:
      return judge_max_load(plan, problem);
    case Objective::time_per_sample:
      return judge_time_per_sample(plan, problem);
    case Objective::pipedream:
      return judge_pipedream(plan, problem);
    case Objective::dapple:
      return judge_dapple(plan, problem);
    default:
      throw std::logic_error("not the objective of a published planner");
  }
}

double published_bound(const Problem& problem) {
  switch (problem.objective) {
    case Objective::max_load:
      return bound_max_load(problem);
    case Objective::time_per_sample:
      return bound_time_per_sample(problem);
    case Objective::pipedream:
      return bound_pipedream(problem);
    case Objective::dapple:
      return bound_dapple(problem);
    default:
      throw std::logic_error("not the objective of a published planner");
  }
}

}  // namespace millrace::plan
