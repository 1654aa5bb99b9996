// What every rank holds of an experiment before there is a plan: the file, the graph, the data and the machine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "app/arguments.h"
#include "app/experiment.h"
#include "cluster/cluster.h"
#include "comm/mpi/world.h"
#include "cost/cost_model.h"
#include "cost/profile.h"
#include "dataset/source.h"
#include "graph/graph.h"

namespace millrace::app {

struct Session {
  Experiment experiment;
  Graph graph;
  cluster::Cluster cluster;
  int threads = 1;                                 ///< of this rank's kernels
  bool oversubscribed = false;                     ///< ranks of this job take turns on a core
  std::shared_ptr<const cost::Profile> profile{};  ///< measured costs, the same on all ranks; null: analytic ones
  bool measured_speeds = false;                    ///< the cluster's speeds are the ranks' own, `slowdown` included
  double measuring_s = 0;                          ///< that measurements took before anything else began
};

/// The costs that the experiment asks for; the session outlives them.
/// \throws InvalidInput  costs that are not analytic and that this command has not measured.
std::unique_ptr<cost::CostModel> make_costs(const Session& session);
/// The same for devices that `cluster` puts in place of the session's, as many or in groups.
std::unique_ptr<cost::CostModel> make_costs(const Session& session, const cluster::Cluster& cluster);

/// Read on rank 0, the same on all. `ranks`: of the job, or those that `--ranks` asks for.
/// \throws InvalidInput  (as SharedError) all that is wrong with the file.
Session open_session(const Arguments& arguments, const comm::World& world, int ranks);

/// The same for planning in this process alone, where there is no MPI.
Session planning_session(Experiment experiment, int ranks);
/// With the graph that load_graph() gave before.
Session planning_session(Experiment experiment, Graph graph, int ranks);

/// The graph that the model section names. data.batch, where it is not given, becomes that of the model's file.
/// \throws InvalidInput  what is wrong with the file.
Graph load_graph(Experiment& experiment);

/// Why the graph is planned and simulated only: an operator without kernels, no loss, several inputs. Empty: it trains.
std::string why_not_trainable(const Graph& graph);

/// Opens the data and holds it against the graph and the batch; checked on rank 0 first, so that all end with one
/// message. Settles train.iterations where epochs were given.
/// On an emulated cluster samples have numbers only, and any graph runs.
/// \throws InvalidInput  also when the graph cannot be trained, or the experiment asks for what is only simulated.
std::unique_ptr<dataset::Source> open_data(Session& session, const comm::World& world);

/// Samples of the data, as open_data() gives them; where it cannot be opened, one training batch.
struct SampleCounts {
  std::int64_t train = 0;
  std::int64_t test = 0;
};
SampleCounts sample_counts(const Session& session);

/// "fp32" or "fp64".
std::string precision_name(const Experiment& experiment);

}  // namespace millrace::app
