// The objectives of published planners, computed for any plan exactly by their own formulas, so that results compare
// number to number (METHODS 6; the formulas are those of the planners' papers and code).
#pragma once

#include <string>

#include "plan/plan.h"
#include "plan/problem.h"
#include "plan/report.h"

namespace millrace::plan {

bool is_published(Objective objective);
/// Whether the report is of a plan for such an objective.
bool is_published(const PlanReport& report);

/// What a published planner's formula says of a plan.
struct Judgement {
  double value = 0;         ///< in unit(objective)
  std::string why_not{};    ///< why its rules do not allow the plan (memory, machines); empty: allowed
  double bottleneck = 0;    ///< load or time of the fullest stage
  int limiting_stage = 0;   ///< that stage, in the first pipeline
  double memory_bytes = 0;  ///< of the fullest device by its own memory formula; 0: it has none
};

/// \pre is_published(problem.objective), the plan is valid.
/// \throws InvalidInput  when the graph was not read from a file that says what the formula needs.
Judgement judge(const Plan& plan, const Problem& problem);

/// One function an objective, each in a file of its own under plan/published/.
Judgement judge_max_load(const Plan& plan, const Problem& problem);
Judgement judge_time_per_sample(const Plan& plan, const Problem& problem);
Judgement judge_pipedream(const Plan& plan, const Problem& problem);
Judgement judge_dapple(const Plan& plan, const Problem& problem);

double bound_max_load(const Problem& problem);
double bound_time_per_sample(const Problem& problem);
double bound_pipedream(const Problem& problem);
double bound_dapple(const Problem& problem);

/// A proven lower bound on the value over all plans of the problem with convex stages, one stage a device; cheap.
double published_bound(const Problem& problem);

}  // namespace millrace::plan
