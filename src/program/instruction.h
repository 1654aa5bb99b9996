// What a rank does, one step at a time (METHODS 4). The simulator and the runtime both interpret these.
#pragma once

#include <cstdint>
#include <string_view>

namespace millrace {

enum class InstructionKind : std::uint8_t {
  forward,
  backward,            ///< gradients of inputs and of weights together
  backward_input,      ///< gradients of inputs; frees what only it reads
  backward_weight,     ///< gradients of weights, from what backward_input left
  receive_activation,  ///< waits for a transfer that was posted ahead
  send_activation,     ///< starts without blocking; its buffer frees when it is matched
  receive_gradient,
  send_gradient,
  /// Starts the all-reduce of a bucket over its owners. With `op` set it is attached to the computation in front of it
  /// in the list, the bucket's last contribution: it may start inside of it, when the backward of `op` is done.
  reduce_gradients,
  reduce_norm,  ///< the global gradient norm, over all ranks; waits for the reductions that its rank has started
  /// Waits for the bucket's reduction, then the optimizer step. With `op` set it is attached to a computation, like
  /// reduce_gradients: it runs inside of it when the backward of `op` is done, and its gradients need no place any
  /// more.
  update_weights,
  /// Computes the stage's dropped activations (ProgramStage::recompute) of a micro-batch again, from those kept. Stands
  /// before the backward (backward_input) that reads them; what it makes lives until that backward (backward_weight)
  /// ends. Segment by segment: only the largest segment between kept tensors exists at once.
  recompute,
  /// Collectives of a tensor-parallel stage, over the ranks of one replica (`collective`): the rank waits until all
  /// have come and it is done, or computes weight gradients meanwhile (TensorCollective::beside_weights). They stand
  /// between the segments of a computation.
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  /// Weight versions of asynchronous schedules. stash_weights keeps the stage's weights as they are now under
  /// (stage, micro_batch) while updates go on: a copy is due when an update is about to change them, one for all
  /// stashes of equal weights. load_weights: the stage's next computation (with its recompute) uses that stash instead
  /// of the newest weights; a stash that the first iteration does not have yet are the weights that it began with.
  /// drop_stash ends it.
  stash_weights,
  load_weights,
  drop_stash,
  /// Of a bucket whose owners update a part each (Program::shard_optimizer): starts giving all of them all parts, after
  /// update_weights. An iteration ends on its rank when all parts are there.
  gather_weights
};

/// "forward", "send_activation", …
std::string_view name(InstructionKind kind);

/// One instruction of a rank program. Fields that a kind does not use are -1 (`lag`: 0).
struct Instruction {
  InstructionKind kind = InstructionKind::forward;
  std::int32_t stage = -1;        ///< index in Program::stages
  std::int32_t micro_batch = -1;  ///< within the stage's pipeline
  std::int32_t transfer = -1;     ///< index in Program::transfers: sends and receives
  std::int32_t bucket = -1;       ///< index in Program::buckets: reduce_gradients, update_weights, gather_weights
  std::int32_t op = -1;           ///< those of buckets: the operator whose backward it waits for
  std::int32_t collective = -1;   ///< index in Program::collectives: all_reduce … all_to_all
  /// Of a computation that collectives divide, and of a backward_weight that ProgramStage::weight_cuts divide: from 0,
  /// in the order of execution.
  std::int16_t segment = -1;
  /// Iterations back: the instruction belongs to the iteration that began `lag` before the one that executes it
  /// (asynchronous schedules, which do not flush; see Program::overlap). A stash made for the iteration to come has -1.
  /// 0 everywhere else.
  std::int16_t lag = 0;

  bool operator==(const Instruction&) const = default;
};

}  // namespace millrace
