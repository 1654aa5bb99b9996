// Local search on stage labels from several first cuts (METHODS 6).
#pragma once

#include "config/option.h"
#include "config/values.h"
#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/problem.h"

namespace millrace::partitioners {

config::Options local_search_options();

/// One plan for each allowed number of pipelines and stages, replicas as even as possible; cuts any acyclic division,
/// not only runs of one order.
plan::PlanSet local_search(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate);

}  // namespace millrace::partitioners
