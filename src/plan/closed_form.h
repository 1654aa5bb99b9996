// Iteration times by closed form (METHODS 2), and what planning knows of a schedule before an order exists.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/units.h"

namespace millrace::plan {

/// Seconds of one micro-batch on a stage, boundary transfers included.
struct StageSeconds {
  Seconds forward{};
  Seconds backward{};
  Seconds total() const { return forward + backward; }
};

/// Σ(F+B) + (m−1)(max F + max B): exact at any imbalance without communication.
Seconds gpipe_time(std::span<const StageSeconds> stages, std::int64_t micro_batches);

/// Σ(F+B) + (m−1) max(F+B): an upper bound for uneven stages, exact for even ones.
Seconds one_f_one_b_time(std::span<const StageSeconds> stages, std::int64_t micro_batches);

/// max over s of Σ_{i<s}(F+B)_i + m (F+B)_s: a lower bound for gpipe and 1f1b.
Seconds pipeline_lower_bound(std::span<const StageSeconds> stages, std::int64_t micro_batches);

/// What METHODS 2's table says of a schedule.
struct ScheduleTraits {
  std::string_view name;
  Seconds (*iteration_time)(std::span<const StageSeconds>, std::int64_t micro_batches);
  /// Most micro-batches alive on a stage with `from_end` stages from it to the end, itself included.
  std::int64_t (*live)(std::int64_t micro_batches, std::int64_t from_end);
  bool splits_bottleneck;  ///< the slowest forward and the slowest backward count apart (gpipe)
};

/// Makes a schedule from outside the tree known, before it is asked for. `traits.name` must outlive the program.
void add_schedule_traits(const ScheduleTraits& traits);

/// \throws InvalidInput  for a schedule that has no closed form.
const ScheduleTraits& schedule_traits(std::string_view schedule);

}  // namespace millrace::plan
