// The interleaved partitioner; its .cpp says how it works.
#pragma once

#include "config/values.h"
#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/problem.h"

namespace millrace::partitioners {

/// Rounds of its search, time limit.
config::Options interleaved_options();

/// Plans whose stages may share devices, for the objective max_load; the others are refused.
plan::PlanSet interleaved(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate);

}  // namespace millrace::partitioners
