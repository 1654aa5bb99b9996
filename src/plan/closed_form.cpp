// The formulas of METHODS 2, measured fact 1.
#include "plan/closed_form.h"

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "base/errors.h"
#include "base/text.h"

namespace millrace::plan {
namespace {

Seconds sum(std::span<const StageSeconds> stages) {
  Seconds total;
  for (const StageSeconds& stage : stages) total += stage.total();
  return total;
}

std::int64_t all_live(std::int64_t micro_batches, std::int64_t, std::int64_t) { return micro_batches; }
std::int64_t live_of_depth(std::int64_t micro_batches, std::int64_t from_end, std::int64_t) {
  return std::min(micro_batches, from_end);
}
std::int64_t all_but_last_live(std::int64_t micro_batches, std::int64_t from_end, std::int64_t) {
  return from_end == 1 ? 1 : micro_batches;
}
// Weight gradients wait for as long as warm-ups are shorter than the first stage's.
std::int64_t live_until_weights(std::int64_t micro_batches, std::int64_t, std::int64_t stages) {
  return std::min(micro_batches, stages);
}
std::int64_t live_of_double_depth(std::int64_t micro_batches, std::int64_t, std::int64_t stages) {
  return std::min(micro_batches, 2 * stages - 1);
}
// The next iteration's micro-batches follow at once.
std::int64_t live_without_flush(std::int64_t, std::int64_t from_end, std::int64_t) { return from_end; }

// Of one chunk, whatever the others of its device keep; with one chunk a device it is the warm-up of METHODS 2.
std::int64_t live_of_chunk(std::int64_t micro_batches, std::int64_t from_end, std::int64_t stages) {
  return std::min(micro_batches, std::max(2 * from_end - 1, stages / 2));
}
std::int64_t live_of_pair(std::int64_t micro_batches, std::int64_t, std::int64_t stages) {
  return std::min(micro_batches, std::max<std::int64_t>(1, stages / 2));
}

// Steps through the forwards and backwards of one device: METHODS 2's order of interleaved 1F1B, chunk by chunk.
Bytes kept_in_turn(std::span<const HeldStage> chunks) {
  const std::int64_t m = chunks.front().micro_batches;
  const auto v = static_cast<std::int64_t>(chunks.size());
  const std::int64_t p = chunks.front().stages / v, place = chunks.front().index, all = m * v;
  const std::int64_t warmup = m == p && v > 1 ? all : std::min(all, 2 * (p - 1 - place) + (v - 1) * p);
  const auto bytes = [&](std::int64_t chunk) { return chunks[static_cast<std::size_t>(chunk)].per_slot; };
  Bytes now, most;
  for (std::int64_t k = 0; k < all; ++k) {
    now += bytes(v == 1 ? 0 : k % (p * v) / p);
    most = std::max(most, now);
    if (k >= warmup) now -= bytes(v == 1 ? 0 : v - 1 - (k - warmup) % (p * v) / p);
  }
  return most;
}

// The list scheduler keeps this limit.
Bytes kept_in_pairs(std::span<const HeldStage> pair) {
  Bytes both;
  for (const HeldStage& stage : pair) both += stage.per_slot;
  const HeldStage& first = pair.front();
  return std::min(first.micro_batches, std::max<std::int64_t>(1, first.stages / 2)) * both;
}

// (p − 1) chunks before the last device has its first, or after the first has its last.
Seconds fill_in_turn(std::span<const StageSeconds> stages, std::int64_t places, Seconds busiest) {
  const double chunks = static_cast<double>(stages.size()) / static_cast<double>(places);
  return (sum(stages) - busiest) / chunks;
}

// METHODS 2: p − 2 backwards, where they take no less than forwards.
Seconds fill_both_ways(std::span<const StageSeconds> stages, std::int64_t, Seconds) {
  Seconds backward;
  for (const StageSeconds& stage : stages) backward += stage.backward;
  const auto p = static_cast<double>(stages.size());
  return std::max(0.0, p - 2) / p * backward;
}

// References to rows stay good when rows are added.
std::deque<ScheduleTraits>& table() {
  // Split backwards only shorten what 1F1B takes; simulation judges them.
  static std::deque<ScheduleTraits> rows{{"gpipe", gpipe_time, all_live, true},
                                         {"1f1b", one_f_one_b_time, live_of_depth, false},
                                         {"hippie", gpipe_time, all_but_last_live, true},
                                         {.name = "interleaved",
                                          .iteration_time = one_f_one_b_time,
                                          .live = live_of_chunk,
                                          .splits_bottleneck = false,
                                          .kept_together = kept_in_turn,
                                          .shared_fill = fill_in_turn},
                                         {"zb-h1", one_f_one_b_time, live_until_weights, false},
                                         {"zb-h2", one_f_one_b_time, live_of_double_depth, false},
                                         {.name = "zb-v",
                                          .iteration_time = one_f_one_b_time,
                                          .live = live_of_pair,
                                          .splits_bottleneck = false,
                                          .kept_together = kept_in_pairs},
                                         {.name = "chimera",
                                          .iteration_time = one_f_one_b_time,
                                          .live = live_of_depth,
                                          .splits_bottleneck = false,
                                          .shared_fill = fill_both_ways},
                                         {"pipedream", one_f_one_b_time, live_without_flush, false},
                                         {"pipedream-2bw", one_f_one_b_time, live_without_flush, false},
                                         {.name = "zb-greedy",
                                          .iteration_time = one_f_one_b_time,
                                          .live = all_live,
                                          .splits_bottleneck = false,
                                          .adapts_to_memory = true}};
  return rows;
}

}  // namespace

Seconds gpipe_time(std::span<const StageSeconds> stages, std::int64_t micro_batches) {
  Seconds forward, backward;
  for (const StageSeconds& stage : stages) {
    forward = std::max(forward, stage.forward);
    backward = std::max(backward, stage.backward);
  }
  return sum(stages) + static_cast<double>(micro_batches - 1) * (forward + backward);
}

Seconds one_f_one_b_time(std::span<const StageSeconds> stages, std::int64_t micro_batches) {
  Seconds slowest;
  for (const StageSeconds& stage : stages) slowest = std::max(slowest, stage.total());
  return sum(stages) + static_cast<double>(micro_batches - 1) * slowest;
}

Seconds pipeline_lower_bound(std::span<const StageSeconds> stages, std::int64_t micro_batches) {
  Seconds before, bound;
  for (const StageSeconds& stage : stages) {
    bound = std::max(bound, before + static_cast<double>(micro_batches) * stage.total());
    before += stage.total();
  }
  return bound;
}

void add_schedule_traits(const ScheduleTraits& traits) { table().push_back(traits); }

const ScheduleTraits& schedule_traits(std::string_view schedule) {
  const auto& rows = table();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const ScheduleTraits& t) { return t.name == schedule; });
  if (found != rows.end()) return *found;
  std::vector<std::string> valid;
  for (const ScheduleTraits& traits : rows) valid.emplace_back(traits.name);
  throw InvalidInput(unknown_name("schedule", schedule, valid));
}

}  // namespace millrace::plan
