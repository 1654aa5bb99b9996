// Baseline: the same number of layers in each stage, ⌈n/p⌉ first, then ⌊n/p⌋; a layer is what the model's builder
// tagged as one, in canonical order (INTERFACES 9).
#include "partitioners/layer_equal.h"

#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "partitioners/common/baseline.h"
#include "partitioners/common/equal_cuts.h"
#include "partitioners/common/offered.h"
#include "plan/assignment.h"

namespace millrace::partitioners {
namespace {

// Position after the last operator of each layer; an operator without a tag is a layer of its own.
std::vector<std::size_t> layer_ends(const Graph& graph) {
  std::vector<std::size_t> ends;
  for (OpId op = 0; op < graph.size(); ++op) {
    const bool same = op > 0 && !graph.op(op).layer.empty() && graph.op(op).layer == graph.op(op - 1).layer;
    if (same) ends.pop_back();
    ends.push_back(static_cast<std::size_t>(op) + 1);
  }
  return ends;
}

}  // namespace

plan::PlanSet layer_equal(const plan::Problem& problem, const config::Values&, plan::Evaluator& evaluate) {
  if (auto refused = refused_if_published(problem)) return std::move(*refused);
  const std::vector<std::size_t> ends = layer_ends(*problem.graph);
  Order canonical(static_cast<std::size_t>(problem.graph->size()));
  std::iota(canonical.begin(), canonical.end(), 0);
  plan::PlanSet plans;
  for (const plan::Shape& shape : plan::allowed_shapes(problem, plans)) {
    if (static_cast<std::size_t>(shape.stages) > ends.size()) {
      plans.refuse(shape.pipelines, shape.stages, plan::Refusal::not_offered,
                   fmt::format("{} stages of {} layers", shape.stages, ends.size()));
      continue;
    }
    Cuts cuts = even_cuts(ends.size(), shape.stages);
    for (std::size_t& cut : cuts) cut = ends[cut - 1];
    const std::vector<int> replicas = plan::even_replicas(shape.devices, shape.stages);
    add_candidate(plans, problem, evaluate,
                  plan::assign(problem, shape.pipelines, stage_cuts(canonical, cuts, replicas)), "layer_equal", "");
  }
  return plans;
}

}  // namespace millrace::partitioners
