// Interprets a program in simulated time.
#pragma once

#include <vector>

#include "base/units.h"
#include "graph/graph.h"
#include "program/program.h"
#include "program/timeline.h"
#include "sim/costs.h"

namespace millrace::sim {

/// One iteration alone, from time 0.
struct Simulation {
  Timeline timeline;
  Seconds iteration_time{};                  ///< makespan: end of the last instruction of any rank
  std::vector<Seconds> busy;                 ///< by rank: computation and updates
  std::vector<Seconds> idle;                 ///< by rank: the rest of the iteration time
  double bubble_fraction = 0;                ///< Σ idle / (ranks × iteration time) (METHODS 1)
  std::vector<int> peak_live_micro_batches;  ///< by rank
};

/// A rank computes one thing at a time, in the order of its list. A message starts when both its send was issued and
/// its receive was posted (receive_window ahead, METHODS 4) and then takes its own time: messages do not share links
/// here. Reductions of a rank run one after the other beside its computation: end_k = max(ready_k, end_{k−1}) + AR_k
/// (METHODS 5). The norm waits for all ranks and costs one all-reduce of 8 bytes. Computation of no rows costs nothing.
/// \throws Error  (ExitCode::internal) when the program cannot end (see verify()).
Simulation simulate(const Graph& graph, const Program& program, const SimCosts& costs);

}  // namespace millrace::sim
