// What the baselines share: every allowed number of pipelines and stages, one weight for each operator, equal cuts.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "partitioners/common/topological_order.h"
#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/shapes.h"

namespace millrace::partitioners {

/// Evaluates `plan`, recomputed where that makes it fit (plan/fit.h), and adds it under the partitioner's name.
void add_candidate(plan::PlanSet& plans, const plan::Problem& problem, plan::Evaluator& evaluate, Plan plan,
                   const std::string& partitioner, const std::string& order);

/// One plan for each allowed shape: the depth-first order cut to equal weights, replicas as even as possible.
plan::PlanSet equal_weight_plans(const plan::Problem& problem, plan::Evaluator& evaluate,
                                 const std::string& partitioner,
                                 const std::function<std::vector<double>(const Order&, const plan::Shape&)>& weights);

}  // namespace millrace::partitioners
