// Objective max_load, contiguous class: the best chain of convex stages, proven (METHODS 6, `exact`).
#pragma once

#include <chrono>

#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/problem.h"

namespace millrace::partitioners {

/// One candidate, under the name `exact`: the optimum over convex stages, one a device, with itself as bound. At
/// `deadline` the best plan so far, with the largest bound that was proven, and the report says "time".
/// \pre problem.objective is max_load.
/// \throws InvalidInput  when the graph was not read from a dnn-partitioning file.
plan::PlanSet max_load_exact(const plan::Problem& problem, std::chrono::steady_clock::time_point deadline,
                             plan::Evaluator& evaluate);

}  // namespace millrace::partitioners
