// Stages by the devices that hold them, and what they cost, for schedules that fit their order to times and memory.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "program/compute_order.h"
#include "program/stage_dag.h"

namespace millrace::schedules {

/// Seconds and bytes of one micro-batch on a stage.
struct StageCost {
  double forward = 1;
  double backward_input = 1;
  double backward_weight = 1;
  double hop = 0;
  double activations = 1;
  double kept_for_weights = 1;
};

/// The stages of one list of devices: they compute one thing at a time.
struct Column {
  std::vector<std::int32_t> stages;  ///< flat indices, ascending
  double limit = 0;                  ///< of activation bytes, the least of its devices; infinite without one
};

/// A plan as list scheduling sees it; vectors are by flat stage index.
struct Columns {
  std::vector<Column> columns;
  std::vector<std::int32_t> column_of;
  std::vector<std::int32_t> pipeline_of;
  std::vector<std::int64_t> micro_batches;
  std::vector<StageCost> costs;
};

/// \throws InvalidInput  two stages that share some devices and not all.
Columns make_columns(const Plan& plan, const StageCosts& costs, std::string_view schedule);

}  // namespace millrace::schedules
