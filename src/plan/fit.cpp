// Asks the evaluator once, and again where recomputation may help.
#include "plan/fit.h"

#include <algorithm>
#include <map>
#include <utility>

#include "plan/closed_form.h"

namespace millrace::plan {
namespace {

// With all stages of a device at their peaks; only one computes at a time.
std::map<int, Bytes> held_by_device(const PlanReport& report) {
  std::map<int, Bytes> held, workspace;
  for (const StageReport& row : report.stages) {
    for (const int device : row.devices) {
      held[device] += row.memory.total() - row.memory.workspace;
      workspace[device] = std::max(workspace[device], row.memory.workspace);
    }
  }
  for (auto& [device, bytes] : held) bytes += workspace.at(device);
  return held;
}

}  // namespace

bool recomputes_all(const Problem& problem, std::size_t stage, std::size_t stages) {
  if (problem.recompute != Recompute::all) return false;
  return stage + 1 < stages ||
         schedule_traits(problem.schedule).live(problem.micro_batches, 1, static_cast<std::int64_t>(stages)) > 1;
}

Candidate fitted(const Problem& problem, Evaluator& evaluate, Plan plan) {
  Candidate candidate{std::move(plan), {}};
  candidate.report = evaluate.evaluate(candidate.plan);
  if (candidate.report.feasible || problem.recompute == Recompute::none) return candidate;
  Candidate smaller{candidate.plan, {}};
  bool changed = false;
  const std::map<int, Bytes> held = held_by_device(candidate.report);
  for (const StageReport& row : candidate.report.stages) {
    const bool over = std::any_of(row.devices.begin(), row.devices.end(), [&](int device) {
      const auto limit = problem.memory_of(device);
      return limit && held.at(device) > *limit;
    });
    Stage& stage =
        smaller.plan.pipelines[static_cast<std::size_t>(row.pipeline)].stages[static_cast<std::size_t>(row.index)];
    if (!over || stage.recompute.size() == stage.ops.size()) continue;
    stage.recompute = stage.ops;
    changed = true;
  }
  if (!changed) return candidate;
  smaller.report = evaluate.evaluate(smaller.plan);
  return better(problem.objective, smaller, candidate) ? smaller : candidate;
}

}  // namespace millrace::plan
