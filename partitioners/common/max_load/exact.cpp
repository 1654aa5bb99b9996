// An upper bound from linear orders, a lower one from single items, and the search over ideals between them.
#include "partitioners/common/max_load/exact.h"

#include "partitioners/common/max_load/candidate.h"
#include "partitioners/common/max_load/item_bound.h"
#include "partitioners/common/max_load/orders.h"
#include "partitioners/common/max_load/proof.h"
#include "plan/published.h"

namespace millrace::partitioners {
namespace {

using namespace max_load;

// What is known of its own: a plan that breaks no rule but memory says how much more would be needed.
void show_what_is_missing(const plan::Problem& problem, const Model& model, const std::vector<NamedOrder>& orders,
                          std::chrono::steady_clock::time_point deadline, plan::Evaluator& evaluate,
                          plan::PlanSet& plans) {
  const LinearBest free = best_of_orders(without_limits(model), orders, deadline);
  if (free.chain.empty()) return refuse_all(model, free.late, plans);
  plans.add(judged(problem, on_devices(model, free.chain), {.partitioner = "exact", .order = "ideals"}, evaluate));
}

}  // namespace

plan::PlanSet max_load_exact(const plan::Problem& problem, std::chrono::steady_clock::time_point deadline,
                             plan::Evaluator& evaluate) {
  plan::PlanSet plans;
  if (!allowed_shape(problem, plans)) return plans;
  const Model model = make_model(problem);
  const std::vector<NamedOrder> orders = all_orders(model, *problem.graph);
  const LinearBest known = best_of_orders(model, orders, deadline);
  const double bound = std::max(plan::bound_max_load(problem), item_bound(model, known.load, deadline));
  const Proof proof = prove(model, known.chain, bound, {.deadline = deadline});
  if (proof.chain.empty() && proof.late) {
    refuse_all(model, true, plans);
  } else if (proof.chain.empty()) {
    show_what_is_missing(problem, model, orders, deadline, evaluate, plans);
  } else {
    plans.add(judged(problem, on_devices(model, proof.chain),
                     {.partitioner = "exact",
                      .order = "ideals",
                      .bound = proof.complete() ? proof.load : proof.bound,
                      .bound_source = proof.complete() ? "exact optimum over convex stages" : "search over ideals",
                      .late = proof.late},
                     evaluate));
  }
  return plans;
}

}  // namespace millrace::partitioners
