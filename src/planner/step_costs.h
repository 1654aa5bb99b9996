// What each virtual stage of a large model costs on a cluster: one micro-batch, a hop, the reductions and the update.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cluster/cluster.h"
#include "planner/large_model.h"

namespace millrace::planner {

/// One pass of one micro-batch on a virtual stage.
struct PassTime {
  double compute = 0;  ///< at least what the host needs to dispatch it
  double tensor = 0;   ///< collectives of the tensor-parallel group, in which the devices wait
};

struct StageTimes {
  PassTime forward, backward_input, backward_weight;  ///< backward_input holds the recomputation
};

/// Seconds throughout.
struct StepCosts {
  std::vector<StageTimes> stages;  ///< by virtual stage
  std::vector<double> hops;        ///< from virtual stage i to i + 1, and of gradients back
  std::vector<double> reduction;   ///< by virtual stage: of its gradients over the replicas
  std::vector<double> gathering;   ///< of its weights, where the optimizer is sharded
  std::vector<double> update;      ///< by device of the pipeline: its optimizer step
  double tied = 0;                 ///< the embedding's gradient between the first and the last device
};

/// Figures are of the cluster's first device and node; its size is not looked at.
/// \throws InvalidInput  a precision that the device lacks.
StepCosts step_costs(const Layout& layout, const cluster::Cluster& cluster);

}  // namespace millrace::planner
