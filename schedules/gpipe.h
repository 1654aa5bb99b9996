// GPipe: all forwards, then all backwards (METHODS 2).
#pragma once

#include "config/values.h"
#include "plan/plan.h"
#include "program/compute_order.h"
#include "program/stage_dag.h"

namespace millrace::schedules {

/// \throws InvalidInput  a device with two stages; warm-ups: there is nothing to warm up.
ComputeOrder gpipe(const Plan& plan, const StageDag& dag, const StageCosts& costs, const config::Values& options);

}  // namespace millrace::schedules
