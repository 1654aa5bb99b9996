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

/// A stage of a device that holds several, and what one micro-batch keeps there.
struct HeldStage {
  std::int64_t micro_batches = 1;
  std::int64_t index = 0;   ///< in its pipeline
  std::int64_t stages = 1;  ///< of its pipeline
  Bytes per_slot{};
};

/// What METHODS 2's table says of a schedule.
struct ScheduleTraits {
  std::string_view name;
  Seconds (*iteration_time)(std::span<const StageSeconds>, std::int64_t micro_batches);
  /// Most micro-batches alive on a stage with `from_end` stages from it to the end, itself included, of a pipeline of
  /// `stages`. More stages never keep fewer: where their number is open, the most that there can be is safe.
  std::int64_t (*live)(std::int64_t micro_batches, std::int64_t from_end, std::int64_t stages);
  bool splits_bottleneck;         ///< the slowest forward and the slowest backward count apart (gpipe)
  bool adapts_to_memory = false;  ///< `live` is what it takes where there is room; one micro-batch is enough
  /// Most bytes of activations on a device that holds all of `stages` (ascending by pipeline, then index; the whole
  /// column of the schedule's placement); null: those of its stages at their own peaks.
  Bytes (*kept_together)(std::span<const HeldStage> stages) = nullptr;
  /// What an iteration takes beyond the work of the busiest device, for pipelines whose stages share devices: of the
  /// stages of a pipeline on `places` devices, the busiest of which works `busiest` for a micro-batch of each of its
  /// stages. Null: nothing.
  Seconds (*shared_fill)(std::span<const StageSeconds> stages, std::int64_t places, Seconds busiest) = nullptr;

  /// What a stage must have room for.
  std::int64_t needed(std::int64_t micro_batches, std::int64_t from_end, std::int64_t stages) const {
    return adapts_to_memory ? 1 : live(micro_batches, from_end, stages);
  }
};

/// Makes a schedule from outside the tree known, before it is asked for. `traits.name` must outlive the program.
void add_schedule_traits(const ScheduleTraits& traits);

/// \throws InvalidInput  for a schedule that has no closed form.
const ScheduleTraits& schedule_traits(std::string_view schedule);

}  // namespace millrace::plan
