// HIPPIE, last-stage order: as gpipe, but the last stage turns every micro-batch round at once (METHODS 2).
#pragma once

#include "config/values.h"
#include "plan/plan.h"
#include "program/compute_order.h"
#include "program/stage_dag.h"

namespace millrace::schedules {

config::Options hippie_options();

/// Which order the paper means is our reading: `base: last_stage` runs all forwards first on every stage but those that
/// feed no other, which run F0 B0 F1 B1 …; `base: 1f1b` is 1F1B everywhere, and takes warm-ups.
/// \throws InvalidInput  a device with two stages; warm-ups with base last_stage.
ComputeOrder hippie(const Plan& plan, const StageDag& dag, const StageCosts& costs, const config::Values& options);

}  // namespace millrace::schedules
