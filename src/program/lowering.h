// From compute order to program: inserts transfers, reductions and updates around the computation (METHODS 4).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "graph/graph.h"
#include "plan/plan.h"
#include "program/compute_order.h"
#include "program/program.h"

namespace millrace {

/// How far the reduction of gradients is hidden (METHODS 5). Each level includes those before it.
enum class Hiding : std::uint8_t {
  drain,     ///< level 1: a bucket's reduction follows the computation that completes it
  backward,  ///< level 2: it may start inside that computation (Instruction::op)
  update     ///< level 3: a bucket's update waits for its own reduction only; there is no norm, hence no clipping
};

struct LoweringOptions {
  int receive_window = 1;          ///< receives posted ahead of the one waited for, per edge and peer; at least 0
  std::int32_t tag_limit = 32767;  ///< highest tag that the transport takes; 32767 is what MPI promises
  Hiding hiding = Hiding::drain;
  /// The norm is known and checked a round after the updates (Program::post_validation): no rank waits for it before
  /// the forwards of the next iteration. For schedules that flush.
  bool post_validation = false;
  /// Updates run inside of the backward that completes their bucket, where nothing forbids it (RankWriter); needs
  /// Hiding::update.
  bool fuse_updates = true;
  /// Large gradients of few rows are kept as factors (program/factored_gradients.h); needs Hiding::update.
  bool factor_gradients = true;
  bool shard_optimizer = false;  ///< Program::shard_optimizer; for schedules that flush
  /// Most rows of a batch of the programs that run on the same storage, if they are more than this one's.
  std::int64_t largest_batch = 0;
  /// Of tensor-parallel stages, by flat index of the stage, in the order of execution.
  std::vector<TensorCollective> collectives{};
  /// Of all stages, by flat index; empty: none are known. They give the collectives, too.
  std::vector<std::shared_ptr<const StageParts>> parts{};
};

/// The program of one training iteration on `batch` rows. Receives stand right before the computation that needs
/// them, sends right after the one that makes them. A rank whose rows of a micro-batch are empty still lists the
/// computation (interpreters skip it) and takes part in all reductions; messages without rows do not exist. A gradient
/// that comes back from several stages is summed latest stage first, then by rows: in the order of its receives, with
/// stages of the same rank in their place. A rank that holds several consumers of a tensor receives it once. Where a
/// stage recomputes, that stands before the receives of its backward.
/// Buckets are reduced in their order, each as soon as it and all before it are complete on the rank. A bucket with
/// one owner has no reduce_gradients, only its update. Where the optimizer is sharded, gather_weights follows every
/// other. Every rank enters reduce_norm, with or without parameters, unless there is none. What an order with `update`
/// actions gathers is reduced and applied where they stand, without a norm. Weight gradients that the order defers
/// follow all else, layer by layer.
/// \pre  the plan is valid for the graph.
/// \throws InvalidInput  stages of a pipeline that share some devices and not all; parameters tied across stages with
///                       an order that updates by itself; more edges between two ranks than tags; weight gradients
///                       deferred on a stage that recomputes or is tensor-parallel.
Program lower(const Graph& graph, const Plan& plan, const ComputeOrder& order, std::int64_t batch,
              const LoweringOptions& options = {});

/// The forwards of `batch` rows alone, micro-batch after micro-batch, with the same stages and buckets (so the same
/// storage order) as the training program. One slot serves every stage.
Program lower_evaluation(const Graph& graph, const Plan& plan, std::int64_t batch, const LoweringOptions& options = {});

}  // namespace millrace
