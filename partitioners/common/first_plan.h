// The answer of a search that had no time: "each answers within the limit with its best plan so far" needs a first one.
#pragma once

#include <string>

#include "plan/evaluator.h"
#include "plan/plan_set.h"

namespace millrace::partitioners {

/// Where none of `plans` fits and time was up for a shape, adds a plan whatever the time, with `stopped_by` "time": the
/// depth-first order cut to equal times in one of the allowed shapes, where that fits, else the first that the cuts of
/// common/order_search.h fit into memory. What that takes grows with the graph, by less than a second for most.
plan::PlanSet with_first_plan(const plan::Problem& problem, plan::Evaluator& evaluate, const std::string& partitioner,
                              plan::PlanSet plans);

}  // namespace millrace::partitioners
