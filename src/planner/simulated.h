// Predicts a program by simulating it with the costs of the planner.
#pragma once

#include "cluster/cluster.h"
#include "cost/cost_model.h"
#include "plan/report.h"
#include "program/program.h"
#include "sim/simulate.h"

namespace millrace::planner {

/// Simulated costs from a cost model: a piece of a stage takes the sum of its operators, recomputation their forwards,
/// an update what the model says, else it reads weight, gradient and state once. Messages and collectives share the
/// cluster's links as `options` says (sim/network.h). One such result serves many programs: pieces that they have in
/// common are summed once. `cost` and `cluster` must outlive it.
sim::SimCosts costs_of(const cost::CostModel& cost, const cluster::Cluster& cluster, std::int64_t bytes_per_element,
                       const sim::Options& options = {});

/// Puts the simulated times of a plan for `batch` samples in place of the closed forms' ones; its peak memory is known.
void take_times(const sim::Simulation& run, std::int64_t batch, plan::PlanReport& report);

}  // namespace millrace::planner
