// Checks counts before any cut is looked for.
#include "plan/shapes.h"

#include <fmt/format.h>

namespace millrace::plan {

std::vector<Shape> allowed_pipelines(const Problem& problem, PlanSet& plans) {
  std::vector<Shape> shapes;
  const int devices = problem.cluster->size();
  for (const int pipelines : problem.pipeline_counts()) {
    if (devices % pipelines != 0) {
      plans.refuse(pipelines, problem.stages.value_or(0), Refusal::pipelines_do_not_divide_devices,
                   fmt::format("{} devices, {} pipelines", devices, pipelines));
    } else if (problem.batch < pipelines * problem.micro_batches) {
      plans.refuse(pipelines, problem.stages.value_or(0), Refusal::batch_too_small,
                   fmt::format("a batch of {} for {} pipelines × {} micro-batches", problem.batch, pipelines,
                               problem.micro_batches));
    } else {
      shapes.push_back({pipelines, problem.stages.value_or(0), devices / pipelines});
    }
  }
  return shapes;
}

std::vector<Shape> allowed_shapes(const Problem& problem, PlanSet& plans) {
  std::vector<Shape> shapes;
  for (const Shape shape : allowed_pipelines(problem, plans)) {
    for (const int stages : problem.stage_counts(shape.devices)) {
      if (stages > shape.devices) {
        plans.refuse(shape.pipelines, stages, Refusal::more_stages_than_devices,
                     fmt::format("{} stages on {} devices of a pipeline", stages, shape.devices));
      } else if (stages > problem.graph->size()) {
        plans.refuse(shape.pipelines, stages, Refusal::more_stages_than_operators,
                     fmt::format("{} stages of {} operators", stages, problem.graph->size()));
      } else {
        shapes.push_back({shape.pipelines, stages, shape.devices});
      }
    }
  }
  return shapes;
}

}  // namespace millrace::plan
