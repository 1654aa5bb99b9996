// Knows who offers what.
#include "partitioners/common/offered.h"

#include <string_view>

#include <fmt/format.h>

#include "plan/published.h"

namespace millrace::partitioners {
namespace {

std::string_view offered_by(plan::Objective objective) {
  switch (objective) {
    case plan::Objective::max_load:
      return "dp, exact and interleaved";
    case plan::Objective::dapple:
      return "dp";
    default:
      return "dp and exact";
  }
}

}  // namespace

std::optional<plan::PlanSet> refused_if_published(const plan::Problem& problem) {
  if (!plan::is_published(problem.objective)) return std::nullopt;
  plan::PlanSet plans;
  plans.refuse(problem.pipelines.value_or(0), problem.stages.value_or(0), plan::Refusal::not_offered,
               fmt::format("objective {}: {} search by its formula", plan::name(problem.objective),
                           offered_by(problem.objective)));
  return plans;
}

}  // namespace millrace::partitioners
