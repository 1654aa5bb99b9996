// Predicts a program by simulating it with the costs of the planner.
#pragma once

#include "cluster/cluster.h"
#include "cost/cost_model.h"
#include "program/program.h"
#include "sim/simulate.h"

namespace millrace::planner {

/// Simulated costs from a cost model: a stage takes the sum of its operators, an update reads weight, gradient and
/// state once. `program`, `cost` and `cluster` must outlive the result.
sim::SimCosts costs_of(const Program& program, const cost::CostModel& cost, const cluster::Cluster& cluster,
                       std::int64_t bytes_per_element);

}  // namespace millrace::planner
