// Trains a plan's programs on this rank: the loop over iterations, evaluation, and what comes of them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/transport.h"
#include "dataset/order.h"
#include "dataset/source.h"
#include "kernels/device.h"
#include "program/program.h"
#include "runtime/checkpoints.h"
#include "runtime/clock.h"
#include "runtime/feed.h"
#include "runtime/optimizer.h"
#include "runtime/outcome.h"
#include "runtime/program_runner.h"
#include "runtime/region.h"
#include "runtime/signals.h"
#include "runtime/stage_runner.h"
#include "runtime/train_options.h"
#include "runtime/watchdog.h"

namespace millrace::runtime {

/// The programs of one plan, by batch size: the whole batch first, then the shorter last one of an epoch or of the
/// test split, if there is one. All share stages, buckets and storage order.
struct Programs {
  std::vector<Program> train;
  std::vector<Program> evaluation;  ///< empty: nothing is evaluated
};

/// What training needs besides the plan. All references outlive the trainer.
struct Surroundings {
  comm::Transport& transport;
  const dataset::Source& source;
  const dataset::SampleOrder& order;
  /// Ends the job with a message: called by the watchdog, on its own thread, when a wait exceeds the stall limit.
  std::function<void(const std::string&)> stalled;
  Checkpoints* checkpoints = nullptr;  ///< null: none are made
  SignalWatch* signals = nullptr;      ///< asks for checkpoints; null: nobody does
  /// In place of the one that `kernels` names; null: that one.
  kernels::Device* device = nullptr;
  Clock clock = steady_clock();
  /// Called when this rank has ended an iteration; empty: not.
  std::function<void()> iteration_ended{};
};

/// The device that the options name; sample by sample under train.reproducible: any.
std::unique_ptr<kernels::Device> make_device(const TrainOptions& options);

class Trainer {
 public:
  /// Allocates and compiles everything, so that what does not fit is known before the first step. Collective.
  Trainer(const Graph& graph, const Programs& programs, const TrainOptions& options, Surroundings surroundings);

  /// Goes on where the checkpoint stood, whatever plan made it. Before run().
  /// \pre it is of the same graph, sample order and optimizer. \throws Error  on ranks that cannot read it.
  void resume(const FoundCheckpoint& checkpoint);

  /// Trains up to `options.iterations` and evaluates; every rank of the transport calls it. A signal ends it early.
  /// \throws SharedError  on every rank, after `maximum_skips` iterations in a row whose gradient was not finite, and
  ///   when a checkpoint cannot be written.
  Outcome run(RunObserver& observer);

  /// Bytes that this rank holds before the first step; message buffers may still grow by what is in flight.
  std::int64_t planned_bytes() const { return rank_report().peak_bytes(); }

  /// All parameters and buffers by tensor id, each from its lowest owner, on rank 0; empty elsewhere. Collective.
  std::vector<std::vector<double>> gather_values();

 private:
  std::vector<std::unique_ptr<ProgramRunner>> make_runners(const std::vector<Program>& programs, int first_id);
  ProgramRunner& runner_for(std::vector<std::unique_ptr<ProgramRunner>>& runners, std::size_t rows) const;
  /// Whether tensors exist, so that losses are known.
  bool computed() const { return device_.storage() == kernels::Storage::real; }
  void train_step(const dataset::Batch& batch);
  /// Tells of the iterations whose results are known.
  void tell(RunObserver& observer);
  /// Executes what is left of the iterations begun, and tells of them.
  void settle(RunObserver& observer);
  void check_skips(const IterationRow& row);
  bool checkpoint_if_due(RunObserver& observer);
  void evaluate_if_due(RunObserver& observer, Outcome& outcome);
  EvaluationRow evaluate(std::int64_t iteration);
  RankReport rank_report() const;
  Region region_of(const Bucket& bucket, TensorId tensor) const;
  std::string describe_wait(std::int64_t code, Seconds waited) const;

  const Graph& graph_;
  const Programs& programs_;
  TrainOptions options_;
  Surroundings around_;
  Watchdog watchdog_;
  std::unique_ptr<kernels::Device> own_device_;
  kernels::Device& device_;
  kernels::SampleDevice* by_sample_ = nullptr;               // own_device_ under train.reproducible: any
  std::vector<std::unique_ptr<StageRunner>> stage_runners_;  // of this rank
  std::vector<std::unique_ptr<Optimizer>> optimizers_;
  std::vector<LocalStage> stages_;  // by flat stage index
  std::vector<std::unique_ptr<ProgramRunner>> train_;
  std::vector<std::unique_ptr<ProgramRunner>> evaluation_;
  std::unique_ptr<Feed> train_feed_;
  std::unique_ptr<Feed> evaluation_feed_;
  std::optional<StepSums> evaluation_sums_;
  ProgramRunner* active_ = nullptr;   // runs the iterations that are not settled
  std::vector<IterationRow> untold_;  // in order; results to come
  TrainingCounters counters_;
  SignalCounts signals_;  // of all ranks, not yet answered by a checkpoint
  Seconds elapsed_{};
  std::vector<double> seconds_;  // of each iteration
  Timeline timeline_;
};

}  // namespace millrace::runtime
