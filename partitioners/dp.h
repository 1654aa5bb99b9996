// The dp partitioner: the dynamic program of METHODS 6 over sequences of operators.
#pragma once

#include "config/values.h"
#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/problem.h"

namespace millrace::partitioners {

/// Order of operators, thinning of bottlenecks, time limit.
config::Options dp_options();

plan::PlanSet dp(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate);

}  // namespace millrace::partitioners
