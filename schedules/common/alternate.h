// The order of 1F1B, which other schedules take as it is.
#pragma once

#include <string_view>

#include "plan/plan.h"
#include "program/compute_order.h"
#include "program/stage_dag.h"

namespace millrace::schedules {

/// Warm-up forwards, then forward and backward in turn, then the rest, on every stage of every pipeline. Warm-ups as
/// plan_rules.h gives them, at most m − 1: that is already the order of gpipe.
/// \throws InvalidInput  in the name of `schedule`: a device with two stages, or warm-ups that would deadlock.
ComputeOrder alternate(const Plan& plan, const StageDag& dag, std::string_view schedule);

}  // namespace millrace::schedules
