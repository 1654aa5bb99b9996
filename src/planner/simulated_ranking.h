// The judge of plans: candidates are simulated, closed forms only tell which of them cannot win.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "plan/objective.h"
#include "plan/problem.h"
#include "program/lowering.h"
#include "sim/run.h"

namespace millrace::planner {

struct SimulatedRanking {
  sim::Options options{};             ///< rows are not kept
  std::vector<Bytes> bucket_sizes{};  ///< tried beside each plan's own
  bool deeper_warmup = true;          ///< tried: twice the depth of the schedule's own, where memory allows (METHODS 2)
  Hiding hiding = Hiding::drain;      ///< of gradient reductions
  Seconds time_limit{10};             ///< what is not simulated by then keeps its closed form, behind the others
};

struct SimulatedCounts {
  std::size_t simulated = 0;  ///< plans and their variants
  std::size_t pruned = 0;     ///< by a lower bound that was not better than the best simulated
  std::size_t refused = 0;    ///< no program or no schedule for them: they keep their closed form
};

/// Mean busy time of the replicas of the fullest stage, or of the stages that devices hold together: no schedule is
/// faster, whatever the lengths of micro-batches.
Seconds least_iteration_time(const plan::Candidate& candidate);

/// Simulates `candidates` of `problem` with their schedules, micro-batches, warm-ups and bucket sizes, puts the best
/// variant of each in its place with its simulated times, and sorts them by the objective (throughput or
/// memory_efficiency; others are left as they are). Costs that candidates have in common are asked for once.
/// \pre the plans are valid.
SimulatedCounts rank_by_simulation(const plan::Problem& problem, std::vector<plan::Candidate>& candidates,
                                   const SimulatedRanking& settings);

}  // namespace millrace::planner
