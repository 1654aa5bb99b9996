// Stage times and footprints, by flat stage.
#include "planner/order_costs.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "plan/memory.h"
#include "plan/stage_times.h"
#include "schedules/registry.h"

namespace millrace::planner {
namespace {

// What the stages of a device hold beside activations.
struct HeldByDevice {
  Bytes standing{};
  Bytes workspace{};  // of the one that computes
};

std::vector<Bytes> activation_limits(const plan::Problem& problem, const std::vector<HeldByDevice>& held) {
  std::vector<Bytes> limits;
  bool any = false;
  for (std::size_t device = 0; device < held.size(); ++device) {
    const std::optional<Bytes> memory = problem.memory_of(static_cast<int>(device));
    any = any || memory.has_value();
    limits.push_back(memory ? *memory - held[device].standing - held[device].workspace
                            : Bytes(std::numeric_limits<std::int64_t>::max()));
  }
  return any ? limits : std::vector<Bytes>{};
}

}  // namespace

StageCosts order_costs(const Plan& plan, const plan::Problem& problem, const StageDag& dag) {
  const plan::PlanTimes times = plan::plan_times(plan, problem);
  const plan::AnalyticBytes bytes(*problem.graph, problem.sizes);
  std::vector<std::shared_ptr<const StageParts>> parts;  // by flat stage
  if (problem.tensor != nullptr) parts = problem.tensor->parts(plan);
  StageCosts costs;
  std::vector<Seconds> transfers;
  std::vector<HeldByDevice> held(static_cast<std::size_t>(problem.cluster->size()));
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (std::size_t s = 0; s < plan.pipelines[p].stages.size(); ++s) {
      const Stage& stage = plan.pipelines[p].stages[s];
      const plan::StageTimes& time = times.stages[p][s];
      costs.forward.push_back(time.forward + time.tensor_forward);
      costs.backward.push_back(time.backward + time.tensor_backward);
      costs.backward_weight.push_back(time.backward_weight);
      transfers.push_back(time.transfer);
      const std::int64_t rows = *std::max_element(time.rows.begin(), time.rows.end());
      const std::shared_ptr<const StageParts> split = parts.empty() ? nullptr : parts[costs.activations.size()];
      const std::size_t shards = split == nullptr ? 1 : static_cast<std::size_t>(split->size());
      Bytes activations;
      for (std::size_t shard = 0; shard < shards; ++shard) {
        const plan::StageFootprint most = split == nullptr
                                              ? bytes.footprint(stage.ops, rows, stage.recompute)
                                              : bytes.part_footprint(split, shard, stage.ops, rows, stage.recompute);
        activations = std::max(activations, most.per_slot);
        for (std::size_t d = shard; d < stage.devices.size(); d += shards) {
          HeldByDevice& on = held[static_cast<std::size_t>(stage.devices[d])];
          on.standing += most.weights + most.gradients + most.optimizer + most.messages;
          on.workspace = std::max(on.workspace, most.workspace);
        }
      }
      costs.activations.push_back(activations);
    }
  }
  for (const std::vector<std::int32_t>& readers : dag.successors) {
    Seconds& hop = costs.hop.emplace_back();
    for (const std::int32_t reader : readers) hop = std::max(hop, transfers[static_cast<std::size_t>(reader)]);
  }
  costs.limit = activation_limits(problem, held);
  return costs;
}

ComputeOrder fitted_order(const Plan& plan, const plan::Problem& problem) {
  const StageDag dag = make_stage_dag(*problem.graph, plan);
  const schedules::Entry& entry = schedules::by_name(plan.schedule);
  const bool fits = (entry.capabilities & schedules::kFitsCosts) != 0;
  return schedules::compute_order(plan, dag, fits ? order_costs(plan, problem, dag) : StageCosts{});
}

}  // namespace millrace::planner
