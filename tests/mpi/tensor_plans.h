// Plans whose stages have several devices a replica, and what those compute.
#pragma once

#include "shard/plan_splitter.h"
#include "tests/mpi/training_run.h"
#include "tests/shard/cut_graph.h"

namespace millrace::testing {

/// Each device of the grid's plan becomes `tensor` devices.
inline Plan make_tensor_plan(const Graph& graph, const Grid& grid, int tensor) {
  Plan plan = make_plan(graph, grid);
  for (Pipeline& pipeline : plan.pipelines) {
    for (Stage& stage : pipeline.stages) {
      std::vector<int> devices;
      for (const int device : stage.devices) {
        for (int t = 0; t < tensor; ++t) devices.push_back(device * tensor + t);
      }
      stage.devices = std::move(devices);
      stage.tensor_parallel = tensor;
    }
  }
  return plan;
}

/// Small networks are split by annotations, since a cost model would leave them whole.
inline void split_operators(const Graph& graph, const Plan& plan, const std::vector<shard::Annotation>& annotations,
                            RunSettings& settings) {
  const int ranks = static_cast<int>(plan.pipelines.size() * plan.pipelines.front().stages.size()) *
                    plan.pipelines.front().stages.front().tensor_parallel;
  const cluster::Cluster cluster = shard::testing::flat_cluster(ranks);
  settings.lowering.parts = shard::PlanSplitter(graph, cluster, {.annotations = annotations, .batch = 8}).parts(plan);
}

inline shard::Annotation split_of(const std::string& tensor, int dim, std::vector<double> weights = {}) {
  return {.tensor = tensor, .op = "", .axis = "", .dim = dim, .weights = std::move(weights), .where = "test"};
}

}  // namespace millrace::testing
