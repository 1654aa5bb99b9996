// Zero bubble by list scheduling: unequal stages, communication, a memory limit per device (METHODS 2).
#pragma once

#include "config/values.h"
#include "plan/plan.h"
#include "program/compute_order.h"
#include "program/stage_dag.h"

namespace millrace::schedules {

config::Options zb_greedy_options();

/// Any placement of stages on devices. Backwards are split; the best order of several priority rules is kept and
/// improved by exchanges. `objective: span` is the longest time from a device's first start to its last end, which is
/// what an iteration adds in steady state; `makespan` that of one iteration alone.
/// \throws InvalidInput  a limit below one micro-batch; stages that share some devices and not all; warm-ups.
ComputeOrder zb_greedy(const Plan& plan, const StageDag& dag, const StageCosts& costs, const config::Values& options);

}  // namespace millrace::schedules
