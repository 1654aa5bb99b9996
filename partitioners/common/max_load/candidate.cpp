// Names devices, evaluates, and keeps the better of two bounds.
#include "partitioners/common/max_load/candidate.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/limits.h"
#include "plan/bounds.h"

namespace millrace::partitioners::max_load {
namespace {}  // namespace

std::vector<DeviceStage> on_devices(const Model& model, const Parts& parts) {
  std::vector<std::size_t> next(model.kinds.size(), 0);
  std::vector<DeviceStage> stages;
  for (const Part& part : parts) {
    DeviceStage stage{model.kinds[part.kind].devices[next[part.kind]++], {}};
    for (const Item item : part.items) stage.ops.push_back(static_cast<OpId>(item));
    stages.push_back(std::move(stage));
  }
  return stages;
}

plan::Candidate judged(const plan::Problem& problem, const std::vector<DeviceStage>& stages, const Finding& finding,
                       plan::Evaluator& evaluate) {
  Plan plan;
  plan.model = problem.graph->name();
  plan.graph_digest = problem.graph->digest();
  plan.schedule = problem.schedule;
  plan.bucket_size = problem.bucket_size;
  Pipeline& pipeline = plan.pipelines.emplace_back();
  pipeline.micro_batches = problem.micro_batches;
  for (const DeviceStage& stage : stages) {
    Stage& added = pipeline.stages.emplace_back();
    added.ops = stage.ops;
    added.devices = {stage.device};
    added.shares = {1.0};
  }
  plan::Candidate candidate{std::move(plan), {}};
  plan::PlanReport& report = candidate.report = evaluate.evaluate(candidate.plan);
  report.partitioner = finding.partitioner;
  report.order = finding.order;
  report.stopped_by = finding.late ? "time" : "complete";
  if (!report.feasible || !report.objective_value) return candidate;
  if (!report.bound || finding.bound >= *report.bound) {
    report.bound = std::min(finding.bound, *report.objective_value);
    report.bound_source = finding.bound_source;
  }
  report.optimality_gap = plan::optimality_gap(problem.objective, *report.objective_value, *report.bound);
  return candidate;
}

bool allowed_shape(const plan::Problem& problem, plan::PlanSet& plans) {
  if (problem.pipelines.value_or(1) == 1 && !problem.stages) return true;
  plans.refuse(problem.pipelines.value_or(0), problem.stages.value_or(0), plan::Refusal::not_offered,
               "objective max_load: one pipeline, whose number of stages is chosen");
  return false;
}

void refuse_all(const Model& model, bool late, plan::PlanSet& plans) {
  const bool cores = std::any_of(model.kinds.begin(), model.kinds.end(), [](const DeviceKind& k) { return k.cpu; });
  const auto for_cores = std::count(model.accelerator_s.begin(), model.accelerator_s.end(), kNever);
  if (for_cores > 0 && !cores) {
    plans.refuse(1, 0, plan::Refusal::not_offered,
                 fmt::format("{} operators need a CPU core, and the machine has none", for_cores));
  } else {
    plans.refuse(1, 0, late ? plan::Refusal::time_limit : plan::Refusal::memory_exceeded);
  }
}

Model without_limits(const Model& model) {
  Model free = model;
  for (DeviceKind& kind : free.kinds) kind.memory = kNever;
  return free;
}

}  // namespace millrace::partitioners::max_load
