// Walks caps on memory down and takes the fastest plan under each; common/order_search.h says how.
#include "partitioners/hippie.h"

#include <utility>

#include "partitioners/common/first_plan.h"
#include "partitioners/common/offered.h"
#include "partitioners/common/order_search.h"

namespace millrace::partitioners {

config::Options hippie_options() {
  config::Options options = order_options();
  options.push_back({"caps", "memory caps that are tried at most, from the fastest plan's memory down",
                     config::Integer{1, 100000}, "64"});
  return options;
}

plan::PlanSet hippie(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate) {
  if (auto refused = refused_if_published(problem)) return std::move(*refused);
  OrderSearch::Settings settings = order_settings("hippie", options);
  settings.caps = static_cast<int>(options.integer("caps"));
  return with_first_plan(problem, evaluate, "hippie", OrderSearch(problem, evaluate, std::move(settings)).run());
}

}  // namespace millrace::partitioners
