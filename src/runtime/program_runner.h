// The interpreter of a program on one rank: it knows instructions, never the schedule that made them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "comm/transport.h"
#include "kernels/device.h"
#include "program/program.h"
#include "program/timeline.h"
#include "runtime/clock.h"
#include "runtime/exchange.h"
#include "runtime/feed.h"
#include "runtime/gradient_reducer.h"
#include "runtime/local_edges.h"
#include "runtime/optimizer.h"
#include "runtime/slots.h"
#include "runtime/stage_runner.h"
#include "runtime/step_sums.h"
#include "runtime/step_times.h"
#include "runtime/tree_reduction.h"
#include "runtime/watchdog.h"
#include "runtime/weight_versions.h"

namespace millrace::runtime {

/// A stage of this rank with its optimizer.
struct LocalStage {
  StageRunner* runner = nullptr;
  Optimizer* optimizer = nullptr;  ///< null where nothing is trained
};

/// What differs between iterations.
struct StepSettings {
  std::int64_t step = 0;  ///< from 0
  double learning_rate = 0;
  double clip_norm = 0;            ///< 0: off
  SignalWatch* signals = nullptr;  ///< whose counts all ranks are to know; null: none
  double slowdown = 1;             ///< kernels take so many times longer
};

/// What all ranks know after an iteration. Losses are means over the valid samples.
struct StepResult {
  double loss = 0;
  double correct = 0;        ///< fraction of right answers
  double gradient_norm = 0;  ///< before clipping; of several updates, the root of the sum of their squares
  bool skipped = false;      ///< not finite: no rank updated (without a norm: some bucket was left as it was)
  SignalCounts signals{};    ///< of all ranks, since the iteration before
};

/// Iterations follow each other in rounds of the program's list; what a round leaves open is executed by later ones or
/// by finish() (program/unroll.h). Where updates wait for the norm, an iteration's result is known when its round ends.
/// Elsewhere nothing makes the ranks meet: losses and norms are summed beside the next round, each bucket is updated
/// where its own gradient is finite (all owners hold the same sum, so they agree), and results are known a round later.
class ProgramRunner final : private kernels::BackwardObserver {
 public:
  /// \param stages  by flat stage index.
  /// \param id      tells the programs of a run apart in the watchdog's codes.
  /// \param clock      what times are measured by.
  /// \param by_sample  the device of the stages where it computes sample by sample; else null.
  ProgramRunner(const Graph& graph, const Program& program, int rank, std::vector<LocalStage> stages,
                comm::Transport& transport, Watchdog& watchdog, int id, Clock clock = steady_clock(),
                kernels::SampleDevice* by_sample = nullptr);

  /// One round, in which the iteration on `batch` begins. `updates` counts the updates so far and rises by those of
  /// this iteration, unless it is skipped because of its norm.
  void train(Feed& feed, const dataset::Batch& batch, const StepSettings& settings, std::int64_t& updates);
  /// Executes all that is left of the iterations begun: before anything else reads or writes the weights.
  void finish();
  /// The result of the next iteration in order, once it is known.
  bool take(StepResult& result);

  /// Forwards only: adds the losses of the batch, each sample weighing `row_weight`, to `sums`.
  void evaluate(Feed& feed, const dataset::Batch& batch, double row_weight, StepSums& sums);

  /// Waits until every message is matched: before the transport goes.
  void drain() { exchange_.drain(watchdog_); }

  /// The watchdog's code of an instruction: program id and position.
  static std::int64_t watch_code(int id, std::int64_t position) {
    return (static_cast<std::int64_t>(id) << 32) | position;
  }

  StepTimes times() const;
  std::int64_t buffer_bytes() const { return exchange_.buffer_bytes() + local_.buffer_bytes(); }
  const Program& program() const { return program_; }

  /// Records when each instruction of the next rounds starts and ends; null: not. Times count from the round's start.
  void record(std::vector<TimelineRow>* rows) { rows_ = rows; }

 private:
  /// An iteration that has begun and is not complete.
  struct Iteration {
    StepSettings settings;
    std::int64_t valid = 0;  // rows of the batch
    double row_weight = 0;
    std::int64_t updates_before = 0;
    std::vector<std::int64_t> updates;  // by bucket, so far
    double gradient_scale = 1;
    bool skipped = false;
  };

  void run_round(std::int64_t begun, Feed* feed, const dataset::Batch* batch);
  void execute(const Instruction& instruction, std::int64_t iteration, Feed* feed, const dataset::Batch* batch);
  void forward(const Instruction& instruction, std::int64_t iteration, Feed& feed, const dataset::Batch& batch);
  void backward(const Instruction& instruction, std::int64_t iteration);
  void take_loss(const BoundMicroBatch& place, std::int64_t valid_rows, double row_weight, StepSums& sums) const;
  void seed_loss(const BoundMicroBatch& place, std::int64_t valid_rows, double row_weight) const;
  void receive(const Instruction& instruction, std::int64_t iteration);
  void send(const Instruction& instruction, std::int64_t iteration);
  void reduce_norm(std::int64_t iteration);
  static UpdateScalars scalars_of(std::int32_t bucket, const Iteration& its);
  void apply(std::int32_t bucket, Iteration& its);
  void apply_in_parts(std::int32_t bucket, const BucketPlace& place, std::int64_t iteration);
  void keep_before_update(std::int32_t stage);
  bool validate(std::int64_t iteration);
  void amend(std::int64_t iteration);
  void begin_again();
  void update(std::int32_t bucket, std::int64_t iteration);
  void end_round();
  void finish_sums();
  void done(OpId op) override;
  void set_waits_apart(const Instruction& instruction);
  void prolong(Seconds took);
  void of_bucket(const Instruction& instruction, std::int64_t iteration);

  bool goes_on(const Instruction& instruction) const;
  bool counts(std::int32_t stage) const;
  bool computes_loss(std::int32_t stage) const;
  Iteration& open(std::int64_t iteration) { return open_[static_cast<std::size_t>(iteration) % open_.size()]; }
  StepSums& sums(std::int64_t iteration) { return sums_[static_cast<std::size_t>(iteration) % sums_.size()]; }
  WeightVersions* versions(std::int32_t stage);
  void count_signals(std::int64_t iteration);
  void note_result(const StepSums& sums, bool skipped);

  const Graph& graph_;
  const Program& program_;
  int rank_;
  kernels::Precision precision_;
  kernels::Storage storage_;
  Watchdog& watchdog_;
  std::vector<LocalStage> stages_;  // by flat stage index; runner null where not of this rank
  Slots slots_;
  LocalEdges local_;
  Exchange exchange_;
  GradientReducer reducer_;
  std::optional<TreeReduction> tree_;               // makes the reducer's sums in its place
  std::vector<WeightVersions> versions_;            // of the stages of this rank
  std::vector<std::int32_t> version_of_;            // by flat stage index: in versions_; -1: not of this rank
  std::vector<std::vector<std::size_t>> attached_;  // by position: reductions and updates inside
  std::int64_t updates_per_iteration_ = 0;
  int id_;
  Clock clock_;

  double slowdown_ = 1;
  std::vector<Iteration> open_;      // a ring
  std::vector<StepSums> sums_;       // a ring with one more place: the sums that are under way
  StepSums* evaluation_ = nullptr;   // where losses go instead
  std::int64_t* updates_ = nullptr;  // of the whole run
  std::vector<bool> kept_;           // by flat stage index: as it was before the updates that are not valid yet
  std::int64_t round_ = 0;           // since finish()
  std::int64_t under_way_ = -1;      // iteration whose sums are
  std::vector<StepResult> results_;  // known and not taken
  const std::vector<std::size_t>* inside_ = nullptr;  // what is attached to the backward that runs
  std::size_t done_inside_ = 0;                       // of it
  std::int64_t iteration_inside_ = 0;                 // that it belongs to
  bool within_busy_ = false;                          // its time is measured: waits inside of it are none of it
  StepTimes times_;
  std::vector<TimelineRow>* rows_ = nullptr;
};

}  // namespace millrace::runtime
