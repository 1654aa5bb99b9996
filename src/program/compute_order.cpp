// Writes the compute actions of a stage to all ranks that hold a replica of it.
#include "program/compute_order.h"

#include <algorithm>

namespace millrace {

std::int32_t flat_index(const Plan& plan, StageRef stage) {
  std::size_t index = 0;
  for (std::size_t p = 0; p < static_cast<std::size_t>(stage.pipeline); ++p) index += plan.pipelines[p].stages.size();
  return static_cast<std::int32_t>(index) + stage.stage;
}

const Stage& stage_at(const Plan& plan, std::int32_t flat_stage) {
  auto index = static_cast<std::size_t>(flat_stage);
  std::size_t p = 0;
  while (index >= plan.pipelines[p].stages.size()) index -= plan.pipelines[p++].stages.size();
  return plan.pipelines[p].stages[index];
}

ComputeOrder::ComputeOrder(const Plan& plan) {
  int ranks = 0;
  for (const Pipeline& pipeline : plan.pipelines) {
    first_stage_.push_back(static_cast<std::int32_t>(stage_devices_.size()));
    for (const Stage& stage : pipeline.stages) {
      stage_devices_.push_back(stage.devices);
      for (const int device : stage.devices) ranks = std::max(ranks, device + 1);
    }
  }
  ranks_.resize(static_cast<std::size_t>(ranks));
}

ComputeOrder::Lane ComputeOrder::lane(StageRef stage) {
  return Lane(*this, first_stage_.at(static_cast<std::size_t>(stage.pipeline)) + stage.stage);
}

ComputeOrder::Lane& ComputeOrder::Lane::add(ComputeKind kind, std::int64_t micro_batch, std::int64_t lag) {
  for (const int device : order_->stage_devices_.at(static_cast<std::size_t>(stage_))) {
    order_->ranks_[static_cast<std::size_t>(device)].push_back(
        {kind, stage_, static_cast<std::int32_t>(micro_batch), static_cast<std::int32_t>(lag)});
  }
  return *this;
}

ComputeOrder::Lane& ComputeOrder::Lane::forward(std::int64_t micro_batch) {
  return add(ComputeKind::forward, micro_batch);
}
ComputeOrder::Lane& ComputeOrder::Lane::backward(std::int64_t micro_batch) {
  return add(ComputeKind::backward, micro_batch);
}
ComputeOrder::Lane& ComputeOrder::Lane::backward_input(std::int64_t micro_batch) {
  return add(ComputeKind::backward_input, micro_batch);
}
ComputeOrder::Lane& ComputeOrder::Lane::backward_weight(std::int64_t micro_batch) {
  return add(ComputeKind::backward_weight, micro_batch);
}

}  // namespace millrace
