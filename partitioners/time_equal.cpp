// Baseline: about the same forward and backward time in each stage, as the first device would take.
#include "partitioners/time_equal.h"

#include <algorithm>
#include <vector>

#include "partitioners/common/baseline.h"

namespace millrace::partitioners {

plan::PlanSet time_equal(const plan::Problem& problem, const config::Values&, plan::Evaluator& evaluate) {
  return equal_weight_plans(problem, evaluate, "time_equal", [&](const Order& order, const plan::Shape& shape) {
    const std::int64_t replicas = std::max(1, shape.devices / shape.stages);
    const std::int64_t rows = (problem.micro_batch_rows(shape.pipelines) + replicas - 1) / replicas;
    std::vector<double> times;
    for (const OpId op : order) times.push_back(problem.cost->op_time(op, rows, 0).total().value());
    return times;
  });
}

}  // namespace millrace::partitioners
