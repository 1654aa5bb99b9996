// The judge of plans: candidates are simulated, closed forms only tell which of them cannot win.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/objective.h"
#include "plan/problem.h"
#include "planner/program_memory.h"
#include "program/lowering.h"
#include "sim/run.h"

namespace millrace::planner {

struct SimulatedRanking {
  sim::Options options{};             ///< rows are not kept
  std::vector<Bytes> bucket_sizes{};  ///< tried beside each plan's own, where gradients are reduced
  /// Micro-batches whose weight gradients are deferred, tried beside each plan's own where gradients are reduced.
  std::vector<std::int64_t> deferred_weights{};
  bool deeper_warmup = true;      ///< tried: twice the depth of the schedule's own, where memory allows (METHODS 2)
  Hiding hiding = Hiding::drain;  ///< of gradient reductions
  Seconds time_limit{10};         ///< what is not simulated by then keeps its closed form, behind the others
  /// What the ranks of a plan hold, from the devices that run it; nothing, or empty: not known, tensors are counted.
  /// Counted bytes prune; the best plans are asked for from the best down until `asked` of them fit.
  std::function<std::optional<ProgramMemory>(const Plan&)> device_memory{};
  std::size_t asked = 1;
  std::size_t threads = 0;  ///< that simulate, with the same outcome for any number; 0: one a core
};

struct SimulatedCounts {
  std::size_t simulated = 0;  ///< plans and their variants
  std::size_t reused = 0;     ///< of them: their programs were equal to those of others
  std::size_t pruned = 0;     ///< by a lower bound that was not better than the best simulated
  std::size_t refused = 0;    ///< by their schedule, variants too
  /// Of the plans that fit as counted and not as their devices say; nothing: there are none.
  std::optional<Bytes> least_refused_memory{};
  /// What was chosen for the first candidate beside its cut, and among what: a line each.
  std::vector<std::string> choices{};
};

/// Mean busy time of the replicas of the fullest stage, or of the stages that devices hold together: no schedule is
/// faster, whatever the lengths of micro-batches.
Seconds least_iteration_time(const plan::Candidate& candidate);

/// What `bucket_size: auto` tries.
inline constexpr std::array<Bytes, 4> kAutomaticBucketSizes{Bytes(1 << 20), Bytes(5 << 20), Bytes(25 << 20),
                                                            Bytes(100 << 20)};

/// What `deferred_weights: auto` tries.
inline constexpr std::array<std::int64_t, 4> kAutomaticDeferredWeights{0, 2, 8, 32};

/// Simulates `candidates` of `problem` with their schedules and micro-batches, first the best of each schedule by
/// closed form, then those with the lowest bounds; tries other bucket sizes, deferred weight gradients, deeper warm-ups
/// and, where the problem leaves it open, recomputation, one after the other, and keeps what is at least a percent
/// better and fits. The best variant of each takes its place with the times and memory of its program and what was
/// compared (SimulatedCounts::choices); all are sorted by the objective (throughput or memory_efficiency; others are
/// left as they are). Schedules that search for their order do so quickly, and again in full for the first. Candidates
/// that their schedule refuses, or whose order keeps more than their devices have, become infeasible and come last.
/// Costs that candidates have in common are asked for once. \pre the plans are valid.
SimulatedCounts rank_by_simulation(const plan::Problem& problem, std::vector<plan::Candidate>& candidates,
                                   const SimulatedRanking& settings);

}  // namespace millrace::planner
