// Equal cuts of shape after shape, then the order search without a deadline until something fits.
#include "partitioners/common/first_plan.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "partitioners/common/equal_cuts.h"
#include "partitioners/common/order_search.h"
#include "plan/assignment.h"
#include "plan/fit.h"
#include "plan/shapes.h"

namespace millrace::partitioners {
namespace {

// The first that fits, or the best of those that there is a moment to look at.
std::optional<plan::Candidate> equal_cut_plan(const plan::Problem& problem, plan::Evaluator& evaluate,
                                              const std::vector<plan::Shape>& shapes) {
  const Order order = topological_order(*problem.graph, TieBreak::depth_first);
  std::vector<double> times;
  for (const OpId op : order) {
    times.push_back(problem.cost->op_time(op, problem.micro_batch_rows(1), 0).total().value());
  }
  constexpr std::chrono::milliseconds kToCompare{50};
  const auto enough = std::chrono::steady_clock::now() + kToCompare;
  std::optional<plan::Candidate> best;
  for (const plan::Shape& shape : shapes) {
    if (best && std::chrono::steady_clock::now() > enough) break;
    const std::vector<int> replicas = plan::even_replicas(shape.devices, shape.stages);
    const auto cuts = stage_cuts(order, equal_cuts(times, shape.stages), replicas);
    plan::Candidate candidate =
        plan::fitted(problem, evaluate, plan::assign(problem, shape.pipelines, cuts, plan::Shares::by_speed));
    candidate.report.order = "topological";
    if (!candidate.report.feasible) continue;
    if (!best || plan::better(problem.objective, candidate, *best)) best = std::move(candidate);
  }
  return best;
}

}  // namespace

plan::PlanSet with_first_plan(const plan::Problem& problem, plan::Evaluator& evaluate, const std::string& partitioner,
                              plan::PlanSet plans) {
  const auto& refusals = plans.refusals();
  const bool late = std::any_of(refusals.begin(), refusals.end(), [](const plan::Refused& refused) {
    return refused.reason == plan::Refusal::time_limit;
  });
  if (!late || plans.feasible()) return plans;
  plan::PlanSet refused;  // said already
  const std::vector<plan::Shape> shapes = plan::allowed_shapes(problem, refused);
  std::optional<plan::Candidate> first = equal_cut_plan(problem, evaluate, shapes);
  if (!first) {
    OrderSearch::Settings settings{.partitioner = partitioner, .cluster = false, .time_limit = OrderSearch::kUnlimited};
    first = OrderSearch(problem, evaluate, settings).first();
  }
  if (!first) return plans;
  first->report.partitioner = partitioner;
  first->report.stopped_by = "time";
  plans.add(std::move(*first));
  return plans;
}

}  // namespace millrace::partitioners
