// Chimera: pipelines in opposite directions over the same devices, half of the micro-batches each (METHODS 2).
#pragma once

#include "config/values.h"
#include "plan/plan.h"
#include "program/compute_order.h"
#include "program/stage_dag.h"

namespace millrace::schedules {

/// Pipelines 2i and 2i + 1 are a pair: stage s of one is on the devices of stage p − 1 − s of the other, so each device
/// holds two copies of parts of the model. Each keeps the order of 1F1B; a device runs what can start earliest, at a
/// tie the deeper stage.
/// \throws InvalidInput  pipelines that are not such pairs; odd p; m (of both) no multiple of p, or not half for each;
///                       warm-ups.
ComputeOrder chimera(const Plan& plan, const StageDag& dag, const StageCosts& costs, const config::Values& options);

}  // namespace millrace::schedules
