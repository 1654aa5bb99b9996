// Interleaved 1F1B: each device holds v chunks of the pipeline (Megatron-LM; METHODS 2).
#pragma once

#include "config/option.h"
#include "config/values.h"
#include "plan/plan.h"
#include "program/compute_order.h"
#include "program/stage_dag.h"

namespace millrace::schedules {

/// chunks: stages on each device.
config::Options interleaved_options();

/// Stage c · p + s of a pipeline of p · v stages is chunk c of device s. Warm-up 2(p − 1 − s) + (v − 1)p forwards of
/// chunks, all of them if m = p; the k-th forward is of chunk (k mod pv) div p, backwards go through the chunks in
/// reverse.
/// \throws InvalidInput  stages that are not dealt to the devices in turn; m mod p ≠ 0 with v > 1; another number of
///                       chunks than Plan::schedule_options gives; warm-ups.
ComputeOrder interleaved(const Plan& plan, const StageDag& dag, const StageCosts& costs, const config::Values& options);

}  // namespace millrace::schedules
