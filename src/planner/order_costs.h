// Orders of plans whose schedules fit them to what the stages cost and to what their devices have room for.
#pragma once

#include "graph/graph.h"
#include "plan/problem.h"
#include "program/compute_order.h"
#include "program/stage_dag.h"

namespace millrace::planner {

/// One micro-batch (the longest) on each stage, on its slowest replica: compute, the way of its output to the slowest
/// reader on other devices, kept activations on the replica with the most rows; and what each device has left for
/// activations beside all else that its stages hold. Without memory limits there are none. \pre the plan is valid.
StageCosts order_costs(const Plan& plan, const plan::Problem& problem, const StageDag& dag);

/// The order of the plan's schedule, with those costs where it takes them. \throws InvalidInput  what it refuses.
ComputeOrder fitted_order(const Plan& plan, const plan::Problem& problem);

}  // namespace millrace::planner
