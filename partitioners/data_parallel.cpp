// Baseline: the whole model as one stage on all devices of a pipeline; one pipeline unless the problem fixes another
// number.
#include "partitioners/data_parallel.h"

#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "partitioners/common/baseline.h"
#include "partitioners/common/offered.h"
#include "plan/assignment.h"

namespace millrace::partitioners {

plan::PlanSet data_parallel(const plan::Problem& problem, const config::Values&, plan::Evaluator& evaluate) {
  if (auto refused = refused_if_published(problem)) return std::move(*refused);
  plan::PlanSet plans;
  if (problem.stages.value_or(1) != 1) {
    plans.refuse(problem.pipelines.value_or(0), *problem.stages, plan::Refusal::not_offered,
                 fmt::format("one stage only, not {}", *problem.stages));
    return plans;
  }
  plan::Problem one = problem;
  if (!one.pipelines) one.pipelines = 1;
  std::vector<OpId> all(static_cast<std::size_t>(problem.graph->size()));
  std::iota(all.begin(), all.end(), 0);
  for (const plan::Shape& shape : plan::allowed_pipelines(one, plans)) {
    const std::vector<plan::StageCut> stages{{all, shape.devices}};
    add_candidate(plans, problem, evaluate, plan::assign(problem, shape.pipelines, stages), "data_parallel", "");
  }
  return plans;
}

}  // namespace millrace::partitioners
