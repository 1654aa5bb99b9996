// The program: when everything is computed. One instruction list per rank, and the tables that they point into.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "graph/tensor.h"
#include "plan/plan.h"
#include "plan/rows.h"
#include "plan/stage_parts.h"
#include "program/instruction.h"

namespace millrace {

/// A stage of one pipeline as the ranks see it. A rank may hold several: chunks of one pipeline (virtual stages; then
/// all of their ranks, shares and tensor_parallel are equal) or stages of several pipelines (copies of the model).
/// What passes between two stages of one rank needs no message: it is in place when its producer has run.
struct ProgramStage {
  StageRef ref;
  std::vector<OpId> ops;
  /// Replica by replica: shard t of replica r runs on ranks[r · tensor_parallel + t].
  std::vector<int> ranks;
  std::vector<std::vector<RowInterval>> rows;  ///< [micro-batch][replica], rows of the global batch; may be empty
  int slots = 1;                               ///< most micro-batches alive between their forward and backward
  int tensor_parallel = 1;                     ///< ranks of one replica
  std::vector<OpId> recompute;                 ///< ascending; their activations are dropped and computed again
  /// What each rank of a replica computes. Null where a replica has one rank, and where operators are not split yet:
  /// then the stage is timed, not run.
  std::shared_ptr<const StageParts> parts{};
  /// Where deferred weight gradients are divided, descending: segment k of a backward_weight begins with operator
  /// weight_cuts[k] and ends before the segment that ran before it; the last one begins with the stage.
  std::vector<OpId> weight_cuts{};
  /// Of the memory that gradients of all parameters take at once: buckets that are updated within the backward lie in
  /// each other's place (program/recycled_gradients.h).
  double gradient_share = 1;
  std::vector<double>
      optimizer_shares{};  ///< by index in `ranks`: of the state of all parameters, what it keeps; empty: all

  std::size_t replica_of(std::size_t index) const { return index / static_cast<std::size_t>(tensor_parallel); }
};

enum class Direction : std::uint8_t { activation, gradient };

/// One message: some rows of one tensor of one micro-batch, from its producing (consuming) stage to a consuming
/// (its producing) stage on another rank.
struct Transfer {
  Direction direction = Direction::activation;
  TensorId tensor = -1;
  std::int32_t from_stage = -1;  ///< indices in Program::stages
  std::int32_t to_stage = -1;
  std::int32_t sender = -1;  ///< ranks
  std::int32_t receiver = -1;
  std::int32_t micro_batch = -1;
  RowInterval rows;       ///< of the global batch; never empty
  std::int32_t edge = 0;  ///< number of its (tensor, stages, direction) among the messages from sender to receiver
  std::int32_t tag = 0;   ///< of (edge, micro-batch), below the transport's limit
};

/// Gradients that are reduced together over the ranks that own them. Buckets never straddle different sets of stages;
/// their order is the same on all ranks. A rank that holds several of the stages adds their gradients up before it
/// joins the reduction, and updates all of its copies alike.
struct Bucket {
  std::vector<TensorId> tensors;       ///< parameters and buffers, in storage order
  std::vector<int> owners;             ///< ranks, ascending
  std::vector<std::int32_t> stages{};  ///< indices in Program::stages, ascending: those that use the tensors
  /// Which part of tensor-parallel stages: shard t of each replica owns it. 0 where nothing is split, and where every
  /// shard holds and owns the whole.
  int shard = 0;
  /// Of the one tensor of the bucket, the rows of x and dy of the whole batch are kept, and summed over the owners, in
  /// place of the gradient (program/factored_gradients.h); its update makes that part by part. 0: the gradient is kept.
  std::int64_t factor_rows = 0;
};

/// A collective inside a tensor-parallel stage, the same for every micro-batch and replica.
struct TensorCollective {
  InstructionKind kind = InstructionKind::all_reduce;
  std::int32_t stage = -1;  ///< index in Program::stages
  bool backward = false;    ///< in the backward (backward_input), else in the forward (and recompute)
  OpId op = -1;  ///< stands behind this operator's part of the computation; one number behind the stage's: before all
  std::int64_t row_bytes = 0;  ///< logical bytes of one row: METHODS 7 gives what each kind moves of them
  /// In a backward that is not split, ranks wait for it only behind the weight gradients of `op`.
  bool beside_weights = false;
};

struct RankProgram {
  std::vector<Instruction> instructions;
};

/// One iteration on a batch of `batch` rows. Evaluation programs hold forwards and their transfers only.
///
/// Iterations follow each other without a gap: a rank goes on with its list from the top, and waits only where an
/// instruction waits. A program with `overlap` > 0 does not flush: instructions with a `lag` belong to earlier
/// iterations. The first iterations leave out what would belong to iterations before the first; after the last one,
/// `overlap` more rounds execute only what belongs to iterations that have begun (unroll() in program/unroll.h does
/// this). A message is known by its transfer and the iteration that it belongs to.
struct Program {
  std::int64_t batch = 0;
  bool training = true;
  /// Receives posted ahead of the one waited for, per edge and peer (Transfer::edge and sender), in the order of their
  /// instructions.
  int receive_window = 1;
  /// Updates wait for reduce_norm, which every rank enters once. Else there is none, and each waits for its own
  /// reduction: no clipping (METHODS 5, level 3, and programs that do not flush).
  bool norm = true;
  /// Updates do not wait for reduce_norm, which has lag 1: it stands in the next round, between the rank's forwards and
  /// its first backward. Where it says that gradients should have been clipped, or are not finite, every rank takes its
  /// updates back, makes them as they should have been, and begins the round again (post-validation, METHODS 2).
  bool post_validation = false;
  /// The owners of a bucket, where there are several, keep the optimizer's state of one part each (even_part of its
  /// elements, in their order): reduce_gradients leaves them with the sum of theirs alone, update_weights steps over
  /// it, and gather_weights gives everyone all parts.
  bool shard_optimizer = false;
  int overlap = 0;  ///< highest lag of an instruction; 0: the program ends with all that it began
  std::vector<ProgramStage> stages;
  std::vector<Transfer> transfers;
  std::vector<Bucket> buckets;
  std::vector<TensorCollective> collectives;
  std::vector<RankProgram> ranks;
};

}  // namespace millrace
