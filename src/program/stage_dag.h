// Which stages feed which: schedules follow the real tensors, not the stage numbers (METHODS 2).
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"
#include "plan/plan.h"

namespace millrace {

/// One entry per stage, by flat index. An edge goes from a stage to every other stage of its pipeline that reads a
/// tensor which it computes; two stages without a way between them run in parallel.
struct StageDag {
  std::vector<std::vector<std::int32_t>> successors;    ///< ascending
  std::vector<std::vector<std::int32_t>> predecessors;  ///< ascending
  std::vector<int> depth_from_end;                      ///< edges of the longest way to a stage that feeds no other
};

/// \throws InvalidInput  when an operator is in no stage or in two of a pipeline, or stages feed each other in a
/// circle.
StageDag make_stage_dag(const Graph& graph, const Plan& plan);

}  // namespace millrace
