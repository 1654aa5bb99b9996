// Writes the instruction list of one rank: each compute action between its receives and its sends, then reductions.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"
#include "program/compute_order.h"
#include "program/lowering.h"
#include "program/program.h"
#include "program/transfers.h"

namespace millrace {

class RankWriter {
 public:
  RankWriter(const Graph& graph, const Program& program, const Crossings& crossings, int rank,
             const LoweringOptions& options);

  /// All of the rank's actions and what stands between them.
  RankProgram write(const std::vector<ComputeAction>& actions);

 private:
  void write_action(const ComputeAction& action, std::size_t index);
  void computation(InstructionKind kind, const ComputeAction& action);
  void update(const ComputeAction& action);
  void reduce_complete(std::size_t index, std::int32_t stage);
  void reduce_norm_and_update();
  void note_last_contributions(const std::vector<ComputeAction>& actions);
  bool completes(const ComputeAction& action, std::int32_t bucket) const;
  bool fuses(std::int32_t bucket, std::size_t index) const;
  bool sends_gradients(const ComputeAction& action) const;
  void update_bucket(std::int32_t bucket, OpId op);
  const Bucket& bucket_of(std::int32_t index) const { return program_.buckets[static_cast<std::size_t>(index)]; }
  void messages(InstructionKind kind, const ComputeAction& action, const std::vector<std::int32_t>& crossings);

  const Graph& graph_;
  const Program& program_;
  const Crossings& crossings_;
  int rank_;
  Hiding hiding_;
  bool fuse_updates_;
  std::vector<std::int32_t> owned_;          // buckets, ascending
  std::vector<std::size_t> complete_after_;  // index of the action with the last contribution, for each of owned_
  std::size_t next_reduction_ = 0;           // in owned_
  bool updates_in_order_ = false;            // the schedule updates by itself
  std::size_t last_computation_ = 0;         // index of the action
  bool last_is_sent_ = false;                // others wait for what it makes
  std::vector<std::int32_t> updated_;        // buckets, within their backward
  RankProgram result_;
};

}  // namespace millrace
