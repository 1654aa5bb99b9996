// ZB-V: two chunks a device, down and up again in a V, at the activation memory of 1F1B (METHODS 2).
#pragma once

#include "config/values.h"
#include "plan/plan.h"
#include "program/compute_order.h"
#include "program/stage_dag.h"

namespace millrace::schedules {

config::Options zb_v_options();

/// Stages s and 2p − 1 − s of a pipeline of 2p stages are on device s. The order is that of zb-greedy for this
/// placement under a limit of p micro-batches of both chunks (or the device's limit, where that is less). \throws
/// InvalidInput  stages that are not placed in a V; a limit below one micro-batch; warm-ups.
ComputeOrder zb_v(const Plan& plan, const StageDag& dag, const StageCosts& costs, const config::Values& options);

}  // namespace millrace::schedules
