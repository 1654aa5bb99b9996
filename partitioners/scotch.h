// Outside baseline: the graph partitioner Scotch, which knows neither direction nor memory; its parts are repaired.
#pragma once

#include "config/values.h"
#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/problem.h"

namespace millrace::partitioners {

/// Imbalance, time limit.
config::Options scotch_options();

/// Scotch 7 on the undirected graph, operators weighed by time and edges by bytes, on one thread and with its random
/// numbers started anew from Problem::seed, so that the same problem has the same parts.
plan::PlanSet scotch(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate);

}  // namespace millrace::partitioners
