// The program: when everything is computed. One instruction list per rank, and the tables that they point into.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/tensor.h"
#include "plan/plan.h"
#include "plan/rows.h"
#include "program/instruction.h"

namespace millrace {

/// A stage of one pipeline as the ranks see it.
struct ProgramStage {
  StageRef ref;
  std::vector<OpId> ops;
  std::vector<int> ranks;                      ///< replica r runs on ranks[r]
  std::vector<std::vector<RowInterval>> rows;  ///< [micro-batch][replica], rows of the global batch; may be empty
  int slots = 1;                               ///< most micro-batches alive between their forward and backward
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

/// Gradients that are reduced together over the ranks that own them. Buckets never straddle different owner sets;
/// their order is the same on all ranks.
struct Bucket {
  std::vector<TensorId> tensors;  ///< parameters and buffers, in storage order
  std::vector<int> owners;        ///< ranks, ascending
};

struct RankProgram {
  std::vector<Instruction> instructions;
};

/// One iteration on a batch of `batch` rows. Evaluation programs hold forwards and their transfers only.
struct Program {
  std::int64_t batch = 0;
  bool training = true;
  /// Receives posted ahead of the one waited for, per edge and peer (Transfer::edge and sender), in the order of their
  /// instructions.
  int receive_window = 1;
  std::vector<ProgramStage> stages;
  std::vector<Transfer> transfers;
  std::vector<Bucket> buckets;
  std::vector<RankProgram> ranks;
};

}  // namespace millrace
