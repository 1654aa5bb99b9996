// The hippie partitioner: the ME objective of METHODS 6 (seed 002).
#pragma once

#include "config/values.h"
#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/problem.h"

namespace millrace::partitioners {

/// Those of dp, and the number of caps on memory.
config::Options hippie_options();

/// For the objective memory_efficiency the largest batch / T(M) / M over caps M on memory; for others as dp, with the
/// traits of the problem's schedule.
plan::PlanSet hippie(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate);

}  // namespace millrace::partitioners
