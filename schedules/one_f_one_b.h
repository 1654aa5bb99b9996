// 1F1B (DAPPLE, PipeDream-flush): warm-up forwards, then forward and backward in turn, then drain (METHODS 2).
#pragma once

#include "config/values.h"
#include "plan/plan.h"
#include "program/compute_order.h"
#include "program/stage_dag.h"

namespace millrace::schedules {

/// Warm-ups of a pipeline: Pipeline::warmup where given, else the depth of each stage in the stage DAG, which is
/// p − 1 − s on a chain; never more than m − 1, which is already the order of gpipe.
///
/// Along every edge a → b of the DAG the warm-up of a must not be less than that of b: else a would wait for the
/// gradient of micro-batch 0 before it sends a forward that b runs before that gradient. Where it holds, no order of
/// arrival can stop the pipeline: sort F of micro-batch i by i and B by i + w.
/// \throws InvalidInput  warm-ups that are not one a stage, negative, or less than those of a following stage.
ComputeOrder one_f_one_b(const Plan& plan, const StageDag& dag, const StageCosts& costs, const config::Values& options);

}  // namespace millrace::schedules
