// PipeDream-2BW: 1F1B that never flushes, one update per iteration, two versions of the weights (METHODS 2).
#pragma once

#include "config/values.h"
#include "plan/plan.h"
#include "program/compute_order.h"
#include "program/stage_dag.h"

namespace millrace::schedules {

/// W(t + 1) = W(t) − lr · g(W(t − 1)) on every stage: all micro-batches of iteration t use the weights from before the
/// update of iteration t − 1, which is kept as a stash while that update and the next iteration go on.
/// \throws InvalidInput  pipelines that are not alike, m < p (the update would come later than one iteration
///                       after its forwards), a device with two stages, or warm-ups that would deadlock or reach m.
ComputeOrder pipedream_2bw(const Plan& plan, const StageDag& dag, const StageCosts& costs,
                           const config::Values& options);

}  // namespace millrace::schedules
