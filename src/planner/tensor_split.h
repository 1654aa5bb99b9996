// How the planner judges plans whose replicas have several devices: by the parts and collectives that they will run.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cluster/cluster.h"
#include "cost/cost_model.h"
#include "plan/tensor_stages.h"
#include "program/program.h"
#include "shard/plan_splitter.h"
#include "sim/network.h"

namespace millrace::planner {

/// Parts by sharding, collectives as programs list them (program/part_collectives.h), their times as a simulation
/// without contention has them. Several threads may ask.
class TensorSplit final : public plan::TensorStages {
 public:
  /// All must outlive it. \throws InvalidInput  as PlanSplitter.
  TensorSplit(const Graph& graph, const cluster::Cluster& cluster, const cost::CostModel& cost,
              shard::PartRequest request);

  std::vector<std::shared_ptr<const StageParts>> parts(const Plan& plan) const override {
    const std::lock_guard lock(guard_);
    return splitter_.parts(plan);
  }
  Exchanged exchanged(const Stage& stage, const StageParts& parts, std::int64_t rows,
                      std::span<const int> devices) const override;

  /// The collectives of a stage, in the order of execution.
  const std::vector<TensorCollective>& collectives(const OpList& ops, const StageParts& parts) const;
  Seconds time(const TensorCollective& collective, std::int64_t rows, std::span<const int> devices) const;

 private:
  const Graph& graph_;
  shard::PlanSplitter splitter_;
  sim::Network network_;
  mutable std::mutex guard_;  // of what is kept
  mutable std::map<const StageParts*, std::vector<TensorCollective>> collectives_;
};

/// Bytes that a collective over `devices` moves of `bytes` (METHODS 7).
Bytes moved_bytes(InstructionKind kind, Bytes bytes, std::int64_t devices);

}  // namespace millrace::planner
