// The order of 1F1B, which several schedules start from: warm-up forwards, then forward and backward in turn (METHODS
// 2).
#pragma once

#include <string_view>

#include "plan/plan.h"
#include "program/compute_order.h"
#include "program/stage_dag.h"

namespace millrace::schedules {

/// Warm-ups as common/plan_rules.h gives them, never more than m − 1.
/// \throws InvalidInput  a device with two stages, or warm-ups that would deadlock; it names the schedule.
ComputeOrder alternating(const Plan& plan, const StageDag& dag, std::string_view schedule);

}  // namespace millrace::schedules
