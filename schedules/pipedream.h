// PipeDream: 1F1B that never flushes, with an update per micro-batch and stashed weights (METHODS 2).
#pragma once

#include "config/values.h"
#include "plan/plan.h"
#include "program/compute_order.h"
#include "program/stage_dag.h"

namespace millrace::schedules {

/// Every backward uses the weights of its forward. Stage s keeps p − s versions of them: the newest and one for each
/// other micro-batch in flight. The warm-up is not bounded by m: it reaches into the iteration before.
/// \throws InvalidInput  pipelines that are not alike, a device with two stages, or warm-ups that would deadlock.
ComputeOrder pipedream(const Plan& plan, const StageDag& dag, const StageCosts& costs, const config::Values& options);

}  // namespace millrace::schedules
