// Interprets a program in simulated time.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "base/units.h"
#include "graph/graph.h"
#include "program/program.h"
#include "program/timeline.h"
#include "sim/costs.h"
#include "sim/run.h"

namespace millrace::sim {

/// Iterations from the first on, from time 0.
struct Simulation {
  Timeline timeline;           ///< of all iterations, by rank in the order of execution; reductions while they run
  Seconds makespan{};          ///< end of the first iteration's last instruction on any rank
  Seconds iteration_time{};    ///< from the end of one iteration to the end of the next; the makespan of a single one
  std::vector<Seconds> busy;   ///< by rank, in one iteration: computation and updates
  std::vector<Seconds> idle;   ///< by rank: the rest of the iteration time
  double bubble_fraction = 0;  ///< Σ idle / (ranks × iteration time) (METHODS 1)
  std::vector<int> peak_live_micro_batches;  ///< by rank
  /// By rank and Traffic, of one iteration: computing nothing while a transfer that the rank waits for is in flight,
  /// and all in flight.
  std::vector<std::array<Seconds, kTrafficKinds>> exposed, transfer;

  /// 1 − Σ exposed / Σ transfer over the ranks; none where nothing was sent (METHODS 1).
  std::optional<double> hidden(Traffic traffic) const;
};

/// The rules of run() (sim/run.h) for a program and its costs.
/// \throws Error  (ExitCode::internal) when the program cannot end (see verify()).
Simulation simulate(const Graph& graph, const Program& program, const SimCosts& costs, const Options& options = {},
                    std::span<const Straggler> stragglers = {});

}  // namespace millrace::sim
