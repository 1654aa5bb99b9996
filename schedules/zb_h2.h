// ZB-H2: zero bubble with twice the activations of ZB-H1 (zero-bubble paper; METHODS 2).
#pragma once

#include "config/values.h"
#include "plan/plan.h"
#include "program/compute_order.h"
#include "program/stage_dag.h"

namespace millrace::schedules {

/// Warm-up 2(p − s) − 1 on a chain of p stages, p − s being the depth from the end plus one; then B and F in turn, with
/// W of micro-batch j right after B of micro-batch j + 2s, s being the distance from the deepest stage: 2p − 1
/// micro-batches are kept. No device is idle between its first and last instruction where F = B = W and m ≥ 2p.
/// A step with it clips by the global norm only with validation afterwards, as updates do not wait.
/// \throws InvalidInput  a device with two stages; warm-ups (choose zb-h1 or zb-greedy).
ComputeOrder zb_h2(const Plan& plan, const StageDag& dag, const StageCosts& costs, const config::Values& options);

}  // namespace millrace::schedules
