// Equal parts of a plan become two that stand for all: what a simulation of many devices can do without.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cluster/cluster.h"
#include "graph/graph.h"
#include "plan/plan.h"
#include "planner/program_memory.h"
#include "sim/costs.h"
#include "sim/simulate.h"

namespace millrace::planner {

/// A plan of fewer devices whose ranks do what those of the whole plan do. Of equal pipelines the first two are kept,
/// and in each of them of equal lanes: a lane is the replicas of all stages that pass rows to each other and to no
/// others. The first stands for itself, the second for the rest: two, since a gradient that one device owns is not
/// reduced.
struct FoldedPlan {
  Plan plan;                                 ///< its devices are 0, 1, …: ranks of its program
  std::int64_t batch = 0;                    ///< rows of what was kept
  std::vector<int> device_of;                ///< by rank: its device in the whole plan, ascending
  std::vector<int> rank_of;                  ///< by device of the whole plan: the rank that stands for it
  std::vector<std::int32_t> stage_of;        ///< by flat stage of the whole plan: the flat stage that stands for it
  std::vector<std::vector<int>> stands_for;  ///< by rank: devices, ascending

  bool folds() const { return device_of.size() < rank_of.size(); }
};

/// The plan as it is, every device on its own.
FoldedPlan unfolded(const Plan& plan, std::int64_t batch);

/// Parts are equal when they have the same operators, rows, shares, warm-ups and recomputation, and their devices,
/// links and slowness in `stragglers` are the same one by one. Where ranks differ by chance (noise), where a replica
/// has several devices, where flows share ports by their number (dynamic contention), where pipelines share devices or
/// some are idle, and where a schedule fits one order to all devices, nothing is folded. `costs` are those of the whole
/// plan's devices. \pre the plan is valid for the graph.
FoldedPlan fold_plan(const Plan& plan, const Graph& graph, std::int64_t batch, const cluster::Cluster& cluster,
                     const sim::SimCosts& costs, const sim::Options& options,
                     std::span<const sim::Straggler> stragglers = {});

/// The costs of the folded plan's ranks: each computes and sends as its device does, gradients and the norm are summed
/// over all devices. Both arguments must outlive the result.
sim::SimCosts folded_costs(const sim::SimCosts& costs, const FoldedPlan& folded);

/// Those of its ranks. \pre the devices exist.
std::vector<sim::Straggler> folded_stragglers(std::span<const sim::Straggler> stragglers, const FoldedPlan& folded);

/// What the folded ranks took, for every device; the timeline stays that of the folded program.
sim::Simulation unfold(sim::Simulation run, const FoldedPlan& folded);
ProgramMemory unfold(const ProgramMemory& memory, const FoldedPlan& folded);

}  // namespace millrace::planner
