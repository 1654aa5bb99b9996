// Cuts every order that there is and keeps the least load.
#include "partitioners/common/max_load/linear.h"

#include <string>
#include <vector>

#include "partitioners/common/max_load/candidate.h"
#include "partitioners/common/max_load/orders.h"

namespace millrace::partitioners {

plan::PlanSet max_load_linear(const plan::Problem& problem, std::chrono::steady_clock::time_point deadline,
                              plan::Evaluator& evaluate) {
  using namespace max_load;
  plan::PlanSet plans;
  if (!allowed_shape(problem, plans)) return plans;
  const Model model = make_model(problem);
  const std::vector<NamedOrder> orders = all_orders(model, *problem.graph);
  LinearBest best = best_of_orders(model, orders, deadline);
  if (best.chain.empty() && !best.late) best = best_of_orders(without_limits(model), orders, deadline);
  if (best.chain.empty()) {
    refuse_all(model, best.late, plans);
  } else {
    plans.add(judged(problem, on_devices(model, best.chain),
                     {.partitioner = "dp", .order = best.order, .late = best.late}, evaluate));
  }
  return plans;
}

}  // namespace millrace::partitioners
