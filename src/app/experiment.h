// The experiment that a user describes (INTERFACES 2), read and checked; every default is filled in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "cluster/cluster.h"
#include "config/node.h"
#include "config/problems.h"
#include "config/set.h"
#include "config/values.h"
#include "dataset/order.h"
#include "plan/problem.h"
#include "planner/carried_cluster.h"
#include "planner/recompute_mask.h"
#include "program/lowering.h"
#include "runtime/train_options.h"
#include "shard/annotations.h"
#include "sim/goodput.h"
#include "sim/run.h"

namespace millrace::app {

/// A named thing of a registry with its options.
struct Choice {
  std::string name;
  config::Values options;
};

struct ModelSection {
  std::string name;  ///< of the registry, or of the file: its stem until the graph is read, then the graph's
  config::Values options;
  std::optional<std::filesystem::path> file;  ///< the graph's own file, of any kind that `import` reads
};

struct DataSection {
  std::optional<std::filesystem::path> file;  ///< absent: synthetic
  std::int64_t batch = 0;                     ///< samples of an iteration; 0: that of the model's file
  dataset::Tail tail = dataset::Tail::drop;
};

struct ClusterSection {
  std::optional<cluster::Cluster> described;       ///< what a file or a map says
  std::optional<planner::CarriedChanges> carried;  ///< what the model's file says; neither: the ranks of the job
  std::optional<std::filesystem::path> file;       ///< that `described` was read from; not kept in `effective`
};

/// Where times of operators come from; neither: the analytic model.
struct CostsSection {
  bool measured = false;                      ///< measured when the command starts, on the ranks that it runs on
  std::optional<std::filesystem::path> file;  ///< a profile that was kept
};

struct PlanSection {
  std::vector<Choice> partitioners;
  std::string order = "best";  ///< of operators; a partitioner's own option goes before it
  std::string objective = "throughput";
  std::vector<Choice> schedules;
  std::vector<std::int64_t> micro_batches;        ///< candidates, per pipeline; empty: auto
  std::optional<std::int64_t> micro_batch_size;   ///< instead: rows of a micro-batch
  std::vector<int> warmup;                        ///< by stage; empty: the schedule's own
  bool search_warmup = true;                      ///< `auto`: deeper ones are tried; else the schedule's own
  std::vector<Bytes> bucket_sizes{25_MiB};        ///< candidates; empty: auto
  std::vector<std::int64_t> deferred_weights{0};  ///< candidates; empty: auto
  std::optional<Hiding> hiding;                   ///< of gradient reductions (METHODS 5); absent: auto
  sim::Reduction reduction = sim::Reduction::all_reduce;
  std::optional<int> stages;                              ///< absent: auto
  std::vector<std::vector<std::string>> explicit_stages;  ///< patterns, by stage; empty: not given
  std::optional<int> pipelines;                           ///< absent: auto
  std::optional<Bytes> memory_limit;                      ///< absent: the device's
  plan::Recompute recompute = plan::Recompute::none;      ///< for partitioners
  planner::RecomputeMask::Kind recompute_mask = planner::RecomputeMask::Kind::as_cut;
  std::vector<std::string> recompute_patterns;  ///< of operators that are `given`
  std::optional<std::filesystem::path> file;    ///< use this plan as it is
  int tensor_parallel = 1;                      ///< devices that share the operators of each replica
  std::vector<shard::Annotation> annotations;   ///< of `shard` and of tensor-parallel stages
  std::vector<shard::Axis> mesh;                ///< empty: one axis of all devices
};

struct SimulationSection {
  sim::Options options;
  double straggler_fraction = 0;          ///< of the ranks, chosen by draws
  double straggler_factor = 1.5;          ///< on their computation
  std::optional<sim::Failures> failures;  ///< `devices` is set when the cluster is known
};

struct Experiment {
  std::string name;
  std::uint64_t seed = 1;
  ModelSection model;
  DataSection data;
  ClusterSection cluster;
  CostsSection costs;
  PlanSection plan;
  SimulationSection simulation;
  runtime::TrainOptions train;
  std::optional<std::int64_t> epochs;  ///< instead of train.iterations
  /// By rank: factor on its computation, in simulations and runs; plans are made without it unless speeds are measured.
  std::map<int, double> slowdown;
  std::string output;     ///< results file, `{name}` replaced, relative to the working directory
  std::string effective;  ///< YAML with every default filled in
  /// Where `costs` and the keys of `data`, `plan` and `slowdown` were written, "plan.stages" → "e.yaml:5:11", for
  /// errors that planning finds. Kept by what read the file, not in `effective`.
  std::map<std::string, std::string> places;
};

/// Where one word of an experiment stands for a map.
const std::vector<config::ShortForm>& experiment_short_forms();

/// What the command line adds to the file.
struct ExperimentSource {
  std::filesystem::path file;
  std::vector<std::string> sets;             ///< "plan.stages=2"
  std::optional<std::string> output_folder;  ///< replaces the folder of `output`
};

/// \throws InvalidInput  with every error of the file and of the assignments, one a line.
Experiment read_experiment(const ExperimentSource& source);

/// The same from a document, such as a row of a bench list. \throws InvalidInput  also what `problems` held before.
Experiment experiment_from_node(const config::Node& root, config::Problems& problems);

/// The same from the effective text of another rank's experiment.
Experiment experiment_from_text(const std::string& effective);

/// "e.yaml:5:11: plan.stages" with the place of the key, else that of `other`; the key alone where neither was written.
std::string cited(const Experiment& experiment, const std::string& key, const std::string& other = "");

/// What `effective` is for the settings as they are now.
std::string effective_text(const Experiment& experiment);

}  // namespace millrace::app
