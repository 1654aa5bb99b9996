// From a plan with tensor-parallel stages to what each of their devices computes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cost/cost_model.h"
#include "plan/plan.h"
#include "plan/stage_parts.h"
#include "shard/annotations.h"

namespace millrace::shard {

struct PartRequest {
  std::vector<Annotation> annotations{};  ///< on the axis "tensor"; none: the automatic choice
  std::int64_t rows = 1;                  ///< of a micro-batch: choices are made by their costs
  std::int64_t micro_batches = 1;
  std::int64_t real_bytes = 4;
  std::int64_t optimizer_bytes = 8;
};

/// One entry a stage, pipeline by pipeline; null where a replica has one device. What a stage's operators do is decided
/// on the whole graph, so that all stages and pipelines with as many devices do the same. The batch is not split: that
/// is what replicas are for.
/// \throws InvalidInput  faults of annotations; a parameter that two operators need in different parts.
std::vector<std::shared_ptr<const StageParts>> stage_parts(const Graph& graph, const Plan& plan,
                                                           const cluster::Cluster& cluster, const cost::CostModel& cost,
                                                           const PartRequest& request);

/// The parts of one set of operators under a decision. \param mesh  of one axis.
StageParts cut_stage(const Graph& graph, std::span<const OpId> stage, const OpTable& ops, const TensorTable& tensors,
                     const Mesh& mesh, const Decision& decision);

}  // namespace millrace::shard
