// Rules that several schedules lay down for a plan, and the warm-ups that it gives or leaves to them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "program/stage_dag.h"

namespace millrace::schedules {

/// \throws InvalidInput  naming a device that holds two stages.
void require_one_stage_a_device(const Plan& plan, std::string_view schedule);

/// \throws InvalidInput  when the plan gives warm-ups to a schedule that has its own.
void require_no_warmup(const Plan& plan, std::string_view schedule);

/// For schedules whose updates stand between micro-batches: where all pipelines make them at the same places, several
/// pipelines train as one does whose stages have as many replicas.
/// \throws InvalidInput  when pipelines differ in their stages, micro-batches or warm-ups.
void require_alike_pipelines(const Plan& plan, std::string_view schedule);

/// Warm-ups of pipeline `number`, one a stage: Pipeline::warmup where given, else the depth of each stage in the stage
/// DAG, which is p − 1 − s on a chain; at most `most`.
///
/// Along every edge a → b of the DAG the warm-up of a must not be less than that of b: else a would wait for the
/// gradient of micro-batch 0 before it sends a forward that b runs before that gradient. Where it holds, no order of
/// arrival can stop the pipeline: sort F of micro-batch i by i and B by i + w.
/// \throws InvalidInput  warm-ups that are not one a stage, negative, or less than those of a following stage.
std::vector<std::int64_t> warmups(const Plan& plan, int number, const StageDag& dag, std::string_view schedule,
                                  std::int64_t most);

}  // namespace millrace::schedules
