// The loop over shapes.
#include "partitioners/common/baseline.h"

#include <utility>

#include "partitioners/common/equal_cuts.h"
#include "partitioners/common/offered.h"
#include "plan/assignment.h"
#include "plan/fit.h"

namespace millrace::partitioners {

void add_candidate(plan::PlanSet& plans, const plan::Problem& problem, plan::Evaluator& evaluate, Plan plan,
                   const std::string& partitioner, const std::string& order) {
  plan::Candidate candidate = plan::fitted(problem, evaluate, std::move(plan));
  candidate.report.partitioner = partitioner;
  candidate.report.order = order;
  plans.add(std::move(candidate));
}

plan::PlanSet equal_weight_plans(const plan::Problem& problem, plan::Evaluator& evaluate,
                                 const std::string& partitioner,
                                 const std::function<std::vector<double>(const Order&, const plan::Shape&)>& weights) {
  if (auto refused = refused_if_published(problem)) return std::move(*refused);
  const Order order = topological_order(*problem.graph, TieBreak::depth_first);
  plan::PlanSet plans;
  for (const plan::Shape& shape : plan::allowed_shapes(problem, plans)) {
    const Cuts cuts = equal_cuts(weights(order, shape), shape.stages);
    const std::vector<int> replicas = plan::even_replicas(shape.devices, shape.stages);
    Plan plan = plan::assign(problem, shape.pipelines, stage_cuts(order, cuts, replicas));
    add_candidate(plans, problem, evaluate, std::move(plan), partitioner, "topological");
  }
  return plans;
}

}  // namespace millrace::partitioners
