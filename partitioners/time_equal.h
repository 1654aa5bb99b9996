// The time_equal partitioner; its .cpp says how it works.
#pragma once

#include "config/values.h"
#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/problem.h"

namespace millrace::partitioners {

plan::PlanSet time_equal(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate);

}  // namespace millrace::partitioners
