// Looks at which rows batch norm sees together, and forms the same on one rank.
#include "plan/one_rank.h"

#include <vector>

#include <fmt/format.h>

#include "base/errors.h"
#include "plan/rows.h"

namespace millrace::plan {
namespace {

// Schedules that deal stages or pair pipelines have no order for one stage; the gradients are those of any.
constexpr const char* kOneStage = "1f1b";

bool has_buffers(const Graph& graph, const Stage& stage) {
  for (const OpId op : stage.ops) {
    if (!graph.op(op).buffers.empty()) return true;
  }
  return false;
}

// Rows that the replicas of one stage see together, in order.
std::vector<RowInterval> shards(const Plan& plan, std::int64_t batch, StageRef ref) {
  const Pipeline& pipeline = plan.pipelines[static_cast<std::size_t>(ref.pipeline)];
  const auto replicas = static_cast<int>(pipeline.stages[static_cast<std::size_t>(ref.stage)].shares.size());
  std::vector<RowInterval> rows;
  for (std::int64_t m = 0; m < pipeline.micro_batches; ++m) {
    for (int r = 0; r < replicas; ++r) {
      const RowInterval shard = replica_rows(plan, batch, ref, m, r);
      if (!shard.empty()) rows.push_back(shard);
    }
  }
  return rows;
}

Plan whole(const Plan& plan, const Graph& graph, std::int64_t micro_batches) {
  Plan single = plan;
  single.schedule = kOneStage;
  single.schedule_options.clear();
  Stage stage;
  stage.ops = OpList::range(0, static_cast<OpId>(graph.size()));
  stage.devices = {0};
  stage.shares = {1.0};
  single.pipelines = {Pipeline{1.0, micro_batches, {}, {std::move(stage)}}};
  return single;
}

// All rows that batch norm sees together, over the pipelines; the stages of a pipeline must agree.
std::vector<RowInterval> batch_norm_rows(const Plan& plan, const Graph& graph, std::int64_t batch) {
  std::vector<RowInterval> all;
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    std::vector<RowInterval> first;
    for (std::size_t s = 0; s < plan.pipelines[p].stages.size(); ++s) {
      if (!has_buffers(graph, plan.pipelines[p].stages[s])) continue;
      const std::vector<RowInterval> rows = shards(plan, batch, {static_cast<int>(p), static_cast<int>(s)});
      if (first.empty()) first = rows;
      if (rows != first) {
        throw InvalidInput(
            fmt::format("pipeline {}: stages with batch norm have different replicas, so no run on one rank "
                        "normalises over the same rows; give these stages equal replicas",
                        p));
      }
    }
    all.insert(all.end(), first.begin(), first.end());
  }
  return all;
}

}  // namespace

Plan one_rank_plan(const Plan& plan, const Graph& graph, std::int64_t batch) {
  std::int64_t micro_batches = 0;
  for (const Pipeline& pipeline : plan.pipelines) micro_batches += pipeline.micro_batches;
  if (graph.buffers().empty()) return whole(plan, graph, micro_batches);
  const std::vector<RowInterval> seen = batch_norm_rows(plan, graph, batch);
  const Plan single = whole(plan, graph, static_cast<std::int64_t>(seen.size()));
  if (shards(single, batch, {0, 0}) == seen) return single;
  throw InvalidInput(
      fmt::format("batch norm sees {} groups of rows, which one rank cannot form from a batch of {}: choose a "
                  "batch that divides by {}",
                  seen.size(), batch, seen.size()));
}

}  // namespace millrace::plan
