// ZB-H1: 1F1B with the backward split, weight gradients delayed to fill bubbles (zero-bubble paper; METHODS 2).
#pragma once

#include "config/values.h"
#include "plan/plan.h"
#include "program/compute_order.h"
#include "program/stage_dag.h"

namespace millrace::schedules {

/// W of micro-batch j stands right after B of micro-batch j + d, d = how much less the stage warms up than the one that
/// warms up most (s on a chain), so that every stage keeps as many micro-batches as that one; the rest at the end.
/// Warm-ups as 1f1b takes them.
/// \throws InvalidInput  as 1f1b.
ComputeOrder zb_h1(const Plan& plan, const StageDag& dag, const StageCosts& costs, const config::Values& options);

}  // namespace millrace::schedules
