// The objectives of published planners (plan/published.h) have searches of their own: this chooses the one.
#pragma once

#include <optional>

#include "config/values.h"
#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/problem.h"

namespace millrace::partitioners {

/// None where problem.objective is not one of a published planner. Else the plans of its search under the name `dp`;
/// `options` must have `time_limit`, at which the best plan so far is returned and the report says "time". Where the
/// search proves its plan best, bound = value and `bound_source` says in which class.
/// \throws InvalidInput  when the graph or the cluster lacks what the formula needs.
std::optional<plan::PlanSet> published_plans(const plan::Problem& problem, const config::Values& options,
                                             plan::Evaluator& evaluate);

}  // namespace millrace::partitioners
