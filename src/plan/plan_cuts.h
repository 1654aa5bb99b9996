// The ways in which the pipelines of a plan cut the graph: equal pipelines share one, so that it is looked at once.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "plan/plan.h"

namespace millrace::plan {

/// A tensor that a later or earlier stage reads; once for each reading stage.
struct Crossing {
  TensorId tensor = -1;
  int from = 0;
  int to = 0;
};

struct Cut {
  int pipeline = 0;                 ///< the first with these stages
  std::vector<Crossing> crossings;  ///< by tensor, then reader
  std::vector<int> depth_from_end;  ///< by stage: crossings of the longest way to a stage that feeds no other
};

struct PlanCuts {
  std::vector<int> of_pipeline;  ///< its cut
  std::vector<Cut> cuts;         ///< by first pipeline
};

/// O(tensors + readers) for each different cut. \pre every operator is in a stage of each pipeline.
PlanCuts plan_cuts(const Plan& plan, const Graph& graph);

}  // namespace millrace::plan
