// What a partitioner is asked: a graph, a machine, their costs, and what is fixed beforehand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "cost/cost_model.h"
#include "graph/graph.h"
#include "plan/exchange.h"
#include "plan/memory.h"
#include "plan/objective.h"
#include "plan/plan.h"
#include "plan/tensor_stages.h"

namespace millrace::plan {

/// Which activations are dropped after forward and computed again before backward (METHODS 3).
enum class Recompute : std::uint8_t {
  none,
  all,       ///< on every stage, layer by layer
  automatic  ///< per stage, where the plan would not fit otherwise or gets better by it
};

/// One question: for one schedule and one number of micro-batches, how to cut and place the graph. Graph, cluster and
/// cost model must outlive it. Devices = pipelines × devices of a pipeline.
struct Problem {
  const Graph* graph = nullptr;
  const cluster::Cluster* cluster = nullptr;
  const cost::CostModel* cost = nullptr;
  std::int64_t batch = 1;          ///< rows of an iteration, over all pipelines
  std::int64_t micro_batches = 1;  ///< of each pipeline
  std::string schedule = "1f1b";
  Objective objective = Objective::throughput;
  std::optional<int> pipelines{};                  ///< none: the partitioner chooses
  std::optional<int> stages{};                     ///< of a pipeline; none: the partitioner chooses
  std::optional<std::int64_t> micro_batch_size{};  ///< rows of a micro-batch, where an objective fixes them (dapple)
  std::optional<Bytes> memory_limit{};             ///< of each device; none: the device's own
  TrainingBytes sizes{};
  Bytes bucket_size = 25_MiB;
  Recompute recompute = Recompute::none;
  /// Live micro-batches of a stage follow its depth in the DAG of stages (METHODS 2), as programs keep them. Searches
  /// know no depth before the stages behind are cut: they count those by number, which is never less.
  bool live_by_depth = false;
  std::uint64_t seed = 1;        ///< of partitioners that draw random numbers
  Exchange* exchange = nullptr;  ///< the ranks that search together; null: this one alone
  /// Of plans whose replicas have several devices; null: there are none, or their devices share all work alike.
  const TensorStages* tensor = nullptr;

  /// Numbers of pipelines to try, ascending: the fixed one, or all that divide the devices.
  std::vector<int> pipeline_counts() const;
  int devices_per_pipeline(int pipelines) const { return cluster->size() / pipelines; }
  /// Numbers of stages to try in a pipeline of `devices`, ascending: the fixed one, or all that divide them.
  std::vector<int> stage_counts(int devices) const;
  /// Rows of the longest micro-batch of a pipeline with an equal share.
  std::int64_t micro_batch_rows(int pipelines) const;
  /// Bytes that a plan may use on `device`; none: not limited.
  std::optional<Bytes> memory_of(int device) const;
};

/// Speed of each device for this graph: 1 / time of all operators on one micro-batch, the fastest is 1.
std::vector<double> device_speeds(const Problem& problem);

}  // namespace millrace::plan
