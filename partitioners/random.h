// Baseline: a random topological order, cut at random places.
#pragma once

#include "config/values.h"
#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/problem.h"

namespace millrace::partitioners {

/// One plan for each allowed number of pipelines and stages; a function of the problem's seed.
plan::PlanSet random(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate);

}  // namespace millrace::partitioners
