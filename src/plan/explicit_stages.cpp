// Resolves patterns, checks the cover, and assigns devices.
#include "plan/explicit_stages.h"

#include <fmt/format.h>

#include "base/errors.h"
#include "plan/assignment.h"
#include "plan/fit.h"
#include "plan/op_patterns.h"
#include "plan/shapes.h"
#include "plan/validate.h"

namespace millrace::plan {
namespace {

std::vector<std::vector<OpId>> resolved(const Graph& graph, const std::vector<std::vector<std::string>>& stages) {
  ResolvedStages found = resolve_patterns(graph, stages);
  if (found.faults.empty()) return std::move(found.ops);
  std::string text = "stages:";
  for (const PatternFault& fault : found.faults) {
    text += fmt::format("\n  stages[{}][{}]: {}", fault.stage, fault.item, fault.text);
  }
  throw InvalidInput(text);
}

}  // namespace

PlanSet explicit_stages(const Problem& problem, const std::vector<std::vector<std::string>>& stages,
                        Evaluator& evaluator) {
  std::vector<StageCut> cuts;
  for (std::vector<OpId>& ops : resolved(*problem.graph, stages)) cuts.push_back({std::move(ops), 1});
  require_valid(assign(problem, 1, cuts), *problem.graph, {}, "stages");

  Problem shaped = problem;
  shaped.stages = static_cast<int>(stages.size());
  PlanSet plans;
  for (const Shape shape : allowed_shapes(shaped, plans)) {
    const std::vector<int> replicas = even_replicas(shape.devices, shape.stages);
    for (std::size_t s = 0; s < cuts.size(); ++s) cuts[s].replicas = replicas[s];
    Candidate candidate = fitted(problem, evaluator, assign(problem, shape.pipelines, cuts));
    candidate.report.partitioner = "explicit";
    plans.add(std::move(candidate));
  }
  return plans;
}

}  // namespace millrace::plan
