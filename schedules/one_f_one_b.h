// 1F1B (DAPPLE, PipeDream-flush): warm-up forwards, then forward and backward in turn, then drain (METHODS 2).
#pragma once

#include "config/values.h"
#include "plan/plan.h"
#include "program/compute_order.h"
#include "program/stage_dag.h"

namespace millrace::schedules {

/// As common/alternate.h says.
/// \throws InvalidInput  a device with two stages, or warm-ups that would deadlock.
ComputeOrder one_f_one_b(const Plan& plan, const StageDag& dag, const StageCosts& costs, const config::Values& options);

}  // namespace millrace::schedules
