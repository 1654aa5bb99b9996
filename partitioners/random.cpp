// Draws keys and places for each shape.
#include "partitioners/random.h"

#include <utility>

#include "partitioners/common/baseline.h"
#include "partitioners/common/equal_cuts.h"
#include "partitioners/common/fm/starts.h"
#include "partitioners/common/offered.h"
#include "plan/assignment.h"
#include "plan/shapes.h"

namespace millrace::partitioners {

plan::PlanSet random(const plan::Problem& problem, const config::Values&, plan::Evaluator& evaluate) {
  if (auto refused = refused_if_published(problem)) return std::move(*refused);
  const OpEdges edges = successors(*problem.graph);
  const auto size = static_cast<std::size_t>(problem.graph->size());
  plan::PlanSet plans;
  for (const plan::Shape& shape : plan::allowed_shapes(problem, plans)) {
    fm::Draws draws(problem.seed, "random", static_cast<std::uint64_t>(shape.pipelines),
                    static_cast<std::uint64_t>(shape.stages));
    const Order order = fm::decode(edges, fm::random_keys(size, draws));
    const fm::Ends ends = fm::random_ends(size, shape.stages, draws);
    const std::vector<int> replicas = plan::even_replicas(shape.devices, shape.stages);
    const auto cuts = stage_cuts(order, Cuts(ends.begin(), ends.end()), replicas);
    add_candidate(plans, problem, evaluate, plan::assign(problem, shape.pipelines, cuts), "random", "");
  }
  return plans;
}

}  // namespace millrace::partitioners
