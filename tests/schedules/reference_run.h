// Executes compute orders in whole units of time, independently of the simulator and of the schedules' own estimates.
#pragma once

#include <cstdint>
#include <vector>

#include "program/compute_order.h"
#include "program/stage_dag.h"

namespace millrace::test {

/// Times of one micro-batch, equal on all stages.
struct UnitTimes {
  std::int64_t forward = 4;
  std::int64_t backward_input = 4;
  std::int64_t backward_weight = 4;
  std::int64_t hop = 0;  ///< between stages on different ranks
};

struct ReferenceRun {
  bool ends = false;
  std::int64_t makespan = 0;
  std::vector<std::int64_t> spans;  ///< by rank: last end − first start
  std::vector<std::int64_t> idle;   ///< by rank: makespan − computed
  std::vector<int> peaks;           ///< by rank: most forwards whose (weight) backward has not run
  std::int64_t longest_span() const;
};

/// A rank computes in its order and waits for what a stage reads; sends do not block. One iteration that flushes.
ReferenceRun reference_run(const Plan& plan, const StageDag& dag, const ComputeOrder& order, const UnitTimes& times);

}  // namespace millrace::test
