// Cuts topological and cluster orders for the problem's objective; common/order_search.h says how.
#include "partitioners/dp.h"

#include <utility>

#include "partitioners/common/first_plan.h"
#include "partitioners/common/order_search.h"
#include "partitioners/common/published.h"

namespace millrace::partitioners {

config::Options dp_options() { return order_options(); }

plan::PlanSet dp(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate) {
  if (auto plans = published_plans(problem, options, evaluate)) return std::move(*plans);
  return with_first_plan(problem, evaluate, "dp", OrderSearch(problem, evaluate, order_settings("dp", options)).run());
}

}  // namespace millrace::partitioners
