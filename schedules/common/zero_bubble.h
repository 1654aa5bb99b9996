// The fixed orders with weight gradients apart: zb-h1 and zb-h2 by themselves, and what zb-greedy holds its own
// against.
#pragma once

#include "plan/plan.h"
#include "program/compute_order.h"
#include "program/stage_dag.h"

namespace millrace::schedules {

/// 1F1B on forwards and input gradients; the weight gradients follow late enough to fill the drain, not the memory.
/// \pre one stage a device. \throws InvalidInput  warm-ups that would stop the pipeline.
ComputeOrder zb_h1_order(const Plan& plan, const StageDag& dag);

/// Enough forwards to reach over the whole way to the last stage and back, then weight gradients fill what is left.
/// \pre one stage a device, no warm-ups of the plan's own.
ComputeOrder zb_h2_order(const Plan& plan, const StageDag& dag);

}  // namespace millrace::schedules
