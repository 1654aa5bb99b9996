// Outside baseline: the graph partitioner METIS, which knows neither direction nor memory; its parts are repaired.
#pragma once

#include "config/values.h"
#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/problem.h"

namespace millrace::partitioners {

/// Method, imbalance, time limit.
config::Options metis_options();

/// METIS 5 on the undirected graph, operators weighed by time and edges by bytes; Problem::seed is its seed.
plan::PlanSet metis(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate);

}  // namespace millrace::partitioners
