// The interpreter of a program on one rank: it knows instructions, never the schedule that made them.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/transport.h"
#include "program/program.h"
#include "program/timeline.h"
#include "runtime/clock.h"
#include "runtime/exchange.h"
#include "runtime/feed.h"
#include "runtime/gradient_reducer.h"
#include "runtime/optimizer.h"
#include "runtime/stage_runner.h"
#include "runtime/step_sums.h"
#include "runtime/watchdog.h"

namespace millrace::runtime {

/// The stage of this rank with its optimizer.
struct LocalStage {
  StageRunner* runner = nullptr;
  Optimizer* optimizer = nullptr;  ///< null where nothing is trained
};

/// What differs between iterations.
struct StepSettings {
  std::int64_t step = 0;  ///< from 0
  double learning_rate = 0;
  double clip_norm = 0;  ///< 0: off
  double slowdown = 1;   ///< kernels take so many times longer
};

/// What all ranks know after an iteration. Losses are means over the valid samples.
struct StepResult {
  double loss = 0;
  double correct = 0;        ///< fraction of right answers
  double gradient_norm = 0;  ///< before clipping
  bool skipped = false;      ///< not finite: no rank updated
};

/// Seconds that this rank computed, summed over the iterations run.
struct StepTimes {
  Seconds busy{};
  std::int64_t iterations = 0;
};

class ProgramRunner {
 public:
  /// \param stages  by flat stage index.
  /// \param id      tells the programs of a run apart in the watchdog's codes.
  /// \param clock   what times are measured by.
  ProgramRunner(const Graph& graph, const Program& program, int rank, std::vector<LocalStage> stages,
                comm::Transport& transport, Watchdog& watchdog, int id, Clock clock = steady_clock());

  /// One training iteration on `batch`. `updates` counts the updates so far and rises when this one is not skipped.
  StepResult train(Feed& feed, const dataset::Batch& batch, const StepSettings& settings, std::int64_t& updates);

  /// Forwards only: adds the losses of the batch, each sample weighing `row_weight`, to `sums`.
  void evaluate(Feed& feed, const dataset::Batch& batch, double row_weight, StepSums& sums);

  /// Waits until every message is matched: before the transport goes.
  void drain() { exchange_.drain(watchdog_); }

  /// The watchdog's code of an instruction: program id and position.
  static std::int64_t watch_code(int id, std::int64_t position) {
    return (static_cast<std::int64_t>(id) << 32) | position;
  }

  const StepTimes& times() const { return times_; }
  std::int64_t buffer_bytes() const { return exchange_.buffer_bytes(); }
  const Program& program() const { return program_; }

  /// Records when each instruction of the next iterations starts and ends; null: not. Times count from run().
  void record(std::vector<TimelineRow>* rows) { rows_ = rows; }

 private:
  void run(Feed& feed, const dataset::Batch& batch, StepSums& sums);
  void execute(const Instruction& instruction, Feed& feed, const dataset::Batch& batch, StepSums& sums);
  void forward(const Instruction& instruction, Feed& feed, const dataset::Batch& batch, StepSums& sums);
  void backward(const Instruction& instruction, const dataset::Batch& batch);
  void take_loss(const BoundMicroBatch& place, std::int64_t valid_rows, StepSums& sums) const;
  void seed_loss(const BoundMicroBatch& place, std::int64_t valid_rows) const;
  void receive(const Instruction& instruction);
  void send(const Instruction& instruction);
  void reduce_norm();
  void update(const Instruction& instruction);
  bool computes_loss(std::int32_t stage) const;
  const BoundMicroBatch& place(std::int32_t stage, std::int32_t micro_batch) const;

  const Graph& graph_;
  const Program& program_;
  int rank_;
  kernels::Precision precision_;
  Watchdog& watchdog_;
  std::vector<LocalStage> stages_;                   // by flat stage index; runner null where not of this rank
  std::vector<std::vector<BoundMicroBatch>> bound_;  // by flat stage index
  std::vector<bool> adds_;                           // by transfer: this gradient adds to another stage's
  Exchange exchange_;
  GradientReducer reducer_;
  StepSums sums_;
  std::int64_t last_backward_ = -1;  // position after which gradients are complete on this rank
  int id_;
  Clock clock_;

  StepSettings settings_;
  StepResult result_;
  std::int64_t updates_ = 0;
  double row_weight_ = 0;
  StepTimes times_;
  std::vector<TimelineRow>* rows_ = nullptr;
};

}  // namespace millrace::runtime
