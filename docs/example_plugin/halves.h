// A partitioner: halves the operators, in the order of the graph, until there is a stage for each device.
#pragma once

#include "config/values.h"
#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/problem.h"

namespace example {

/// One plan; refused where a half would be empty.
millrace::plan::PlanSet halves(const millrace::plan::Problem& problem, const millrace::config::Values& options,
                               millrace::plan::Evaluator& evaluate);

}  // namespace example
