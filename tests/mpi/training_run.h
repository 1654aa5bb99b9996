// Trains a small network under a hand-made plan on some ranks of the job, for comparison with other plans.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <mpi.h>

#include "comm/node/node_transport.h"
#include "dataset/order.h"
#include "dataset/source.h"
#include "graph/graph.h"
#include "plan/plan.h"
#include "program/lowering.h"
#include "runtime/outcome.h"
#include "runtime/train_options.h"

namespace millrace::testing {

/// Which operators of each stage run again before their backward.
enum class Recompute : std::uint8_t { none, all, all_but_last, chosen };

/// One way to train. Stages are cut evenly by number of operators and placed as the schedule wants them on `stages`
/// devices of each group: one on each, two chunks in turn, in a V, or both ways.
struct Grid {
  int pipelines = 1;  ///< groups
  int stages = 1;     ///< devices of a group
  std::int64_t micro_batches = 1;
  std::string schedule = "1f1b";
  Recompute recompute = Recompute::none;

  int ranks() const { return pipelines * stages; }
};

Plan make_plan(const Graph& graph, const Grid& grid);

/// What a run leaves; parameters on rank 0 of `communicator` only, by tensor id.
struct TrainingRun {
  std::vector<IterationRow> rows;
  std::vector<EvaluationRow> evaluations;
  std::vector<std::vector<double>> values;
  runtime::Outcome outcome;
  RankReport forecast;  ///< of this rank's memory, where it was asked for
};

struct RunSettings {
  std::int64_t batch = 24;
  dataset::Tail tail = dataset::Tail::drop;
  bool evaluate = false;
  LoweringOptions lowering{};
  std::function<void(Program&)> edit;  ///< of each training program, by hand, before it is verified
  runtime::TrainOptions train;
  comm::NodeTransportOptions transport;
  std::filesystem::path checkpoints{};  ///< where they are made, as `train` says; empty: none
  bool forecast = false;
  bool resume = false;                      ///< goes on from the newest of them
  std::function<void()> iteration_ended{};  ///< on each rank, after each of its iterations
};

/// Collective over `communicator`, whose size is the number of devices of the plan.
TrainingRun train(const Graph& graph, const Plan& plan, const dataset::Source& source, const RunSettings& settings,
                  MPI_Comm communicator);

/// A few samples in memory, as a source: N(0, 1) inputs or uniform tokens, uniform labels.
class SmallSource : public dataset::Source {
 public:
  SmallSource(const Graph& graph, std::int64_t train, std::int64_t test);
  std::int64_t samples(dataset::Split split) const override { return split == dataset::Split::train ? train_ : test_; }
  void read_inputs(dataset::Split split, std::span<const std::int64_t> ids, float* destination) const override;
  void read_inputs(dataset::Split split, std::span<const std::int64_t> ids, std::int32_t* destination) const override;
  void read_labels(dataset::Split split, std::span<const std::int64_t> ids, std::int32_t* destination) const override;

 private:
  std::int64_t train_;
  std::int64_t test_;
};

/// Largest relative difference of losses and of gradient norms over all steps.
double row_difference(const TrainingRun& a, const TrainingRun& b);
/// ‖θa − θb‖ / ‖θb‖ over all parameters and buffers.
double value_difference(const TrainingRun& a, const TrainingRun& b);

/// Everyone arrives; the waiting naps, so that ranks without work leave the cores to those that have some.
void patient_barrier();

}  // namespace millrace::testing
