// What a schedule decides: in which order each rank computes. Communication is inserted by lowering (METHODS 4).
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace millrace {

enum class ComputeKind : std::uint8_t {
  forward,
  backward,
  backward_input,
  backward_weight,
  // What asynchronous schedules add; see the instructions of these names.
  stash_weights,
  load_weights,
  drop_stash,
  update  ///< reduces and applies what the stage's backwards gathered since its last update
};

struct ComputeAction {
  ComputeKind kind = ComputeKind::forward;
  std::int32_t stage = -1;  ///< index of the stage, counted through all pipelines
  std::int32_t micro_batch = -1;
  std::int32_t lag = 0;       ///< iterations back that it belongs to (Instruction::lag)
  std::int16_t segment = -1;  ///< of a deferred backward_weight (Instruction::segment); schedules leave it out

  bool operator==(const ComputeAction&) const = default;
};

/// What one micro-batch costs on each stage, by flat stage index: for schedules that fit their order to unequal stages.
/// What is empty is taken as equal stages: forward 1, backward twice that, half of it for the weights, no
/// communication, one byte of activations of which a backward_input frees nothing, no limit.
struct StageCosts {
  std::vector<Seconds> forward;
  std::vector<Seconds> backward;         ///< both gradients together
  std::vector<Seconds> backward_weight;  ///< the part of `backward` that is for weights
  std::vector<Seconds> hop;              ///< of the stage's output on its way to another rank, and of its gradient back
  std::vector<Bytes> activations;        ///< kept from the forward on
  std::vector<Bytes> kept_for_weights;   ///< of them: kept from backward_input to backward_weight
  std::vector<Bytes> limit;              ///< for activations, by rank
};

/// The actions of each rank. All replicas of a stage act alike, so schedules write to the lane of a stage; a rank that
/// holds several stages takes their actions in the order in which they are written.
class ComputeOrder {
 public:
  explicit ComputeOrder(const Plan& plan);

  /// Appends to the ranks of one stage.
  class Lane {
   public:
    Lane& forward(std::int64_t micro_batch);
    Lane& backward(std::int64_t micro_batch);
    Lane& backward_input(std::int64_t micro_batch);
    Lane& backward_weight(std::int64_t micro_batch);
    Lane& add(ComputeKind kind, std::int64_t micro_batch, std::int64_t lag = 0);

   private:
    friend class ComputeOrder;
    Lane(ComputeOrder& order, std::int32_t stage) : order_(&order), stage_(stage) {}
    ComputeOrder* order_;
    std::int32_t stage_;
  };
  Lane lane(StageRef stage);
  Lane lane(std::int32_t flat_stage) { return Lane(*this, flat_stage); }

  const std::vector<std::vector<ComputeAction>>& ranks() const { return ranks_; }

  /// Weight gradients of so many last micro-batches are put off to the end of the iteration, where lowering orders
  /// them layer by layer (program/deferred_weights.h). \pre  the order flushes.
  void defer_weights(std::int64_t micro_batches) { deferred_weights_ = micro_batches; }
  std::int64_t deferred_weights() const { return deferred_weights_; }

 private:
  std::vector<std::vector<int>> stage_devices_;  // by flat stage index
  std::vector<std::int32_t> first_stage_;        // flat index of each pipeline's first stage
  std::vector<std::vector<ComputeAction>> ranks_;
  std::int64_t deferred_weights_ = 0;
};

/// Flat index of `stage`, counted through all pipelines of `plan`.
std::int32_t flat_index(const Plan& plan, StageRef stage);

/// The stage with a flat index. \pre it is in range.
const Stage& stage_at(const Plan& plan, std::int32_t flat_stage);

}  // namespace millrace
