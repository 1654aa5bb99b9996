// Asks once for each number of parts, whatever the number of pipelines.
#include "partitioners/common/library/plans.h"

#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "partitioners/common/offered.h"
#include "plan/assignment.h"
#include "plan/fit.h"
#include "plan/shapes.h"

namespace millrace::partitioners::library {
namespace {

using Clock = std::chrono::steady_clock;

struct Divisions {
  std::vector<Parts> sound;
  std::string why_none;
};

std::vector<plan::StageCut> stages_of(const Parts& parts, int count, const std::vector<int>& replicas) {
  std::vector<plan::StageCut> stages(static_cast<std::size_t>(count));
  for (std::size_t op = 0; op < parts.size(); ++op) {
    stages[static_cast<std::size_t>(parts[op])].ops.push_back(static_cast<OpId>(op));
  }
  for (std::size_t s = 0; s < stages.size(); ++s) stages[s].replicas = replicas[s];
  return stages;
}

}  // namespace

plan::PlanSet divided_plans(const plan::Problem& problem, plan::Evaluator& evaluate, const std::string& partitioner,
                            Seconds time_limit, const std::vector<Divide>& ways) {
  if (auto refused = refused_if_published(problem)) return std::move(*refused);
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time_limit.value()));
  const OpEdges edges = successors(*problem.graph);
  const Order order = topological_order(*problem.graph, edges, TieBreak::depth_first);
  std::vector<double> seconds;
  for (OpId op = 0; op < problem.graph->size(); ++op) {
    seconds.push_back(problem.cost->op_time(op, problem.micro_batch_rows(1), 0).total().value());
  }
  const PartGraph graph = part_graph(*problem.graph, seconds, problem.sizes.real);

  std::map<int, Divisions> known;  // by number of parts
  const auto divisions = [&](int count) -> const Divisions& {
    const auto [at, made] = known.try_emplace(count);
    Divisions& result = at->second;
    if (!made) return result;
    if (count == 1) result.sound.push_back(Parts(seconds.size(), 0));
    for (const Divide& divide : ways) {
      if (count == 1) break;
      const Answer answer = divide(graph, count);
      if (!answer.why_not.empty()) {
        result.why_none = answer.why_not;
        continue;
      }
      for (Parts& parts : repaired(edges, answer.parts, count, order, seconds))
        result.sound.push_back(std::move(parts));
    }
    return result;
  };

  plan::PlanSet plans;
  for (const plan::Shape& shape : plan::allowed_shapes(problem, plans)) {
    // A first plan is made whatever the time.
    const bool late = Clock::now() > deadline;
    if (late && plans.feasible()) {
      plans.refuse(shape.pipelines, shape.stages, plan::Refusal::time_limit);
      continue;
    }
    std::optional<plan::Candidate> best;
    for (const Parts& parts : divisions(shape.stages).sound) {
      const std::vector<int> replicas = plan::even_replicas(shape.devices, shape.stages);
      plan::Candidate candidate = plan::fitted(
          problem, evaluate, plan::assign(problem, shape.pipelines, stages_of(parts, shape.stages, replicas)));
      candidate.report.partitioner = partitioner;
      if (late) candidate.report.stopped_by = "time";
      if (!best || plan::better(problem.objective, candidate, *best)) best = std::move(candidate);
    }
    if (best) {
      plans.add(std::move(*best));
    } else {
      plans.refuse(shape.pipelines, shape.stages, plan::Refusal::not_offered, divisions(shape.stages).why_none);
    }
  }
  return plans;
}

}  // namespace millrace::partitioners::library
