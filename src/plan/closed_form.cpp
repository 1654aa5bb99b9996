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

std::int64_t all_live(std::int64_t micro_batches, std::int64_t) { return micro_batches; }
std::int64_t live_of_depth(std::int64_t micro_batches, std::int64_t from_end) {
  return std::min(micro_batches, from_end);
}
std::int64_t all_but_last_live(std::int64_t micro_batches, std::int64_t from_end) {
  return from_end == 1 ? 1 : micro_batches;
}

// References to rows stay good when rows are added.
std::deque<ScheduleTraits>& table() {
  // Split backwards and chunks only shorten what 1F1B takes; what they keep depends on the number of all stages, which
  // is not known where this is asked: m is safe. Simulation judges both.
  static std::deque<ScheduleTraits> rows{{"gpipe", gpipe_time, all_live, true},
                                         {"1f1b", one_f_one_b_time, live_of_depth, false},
                                         {"hippie", gpipe_time, all_but_last_live, true},
                                         {"interleaved", one_f_one_b_time, all_live, false},
                                         {"zb-h1", one_f_one_b_time, all_live, false},
                                         {"zb-h2", one_f_one_b_time, all_live, false},
                                         {"zb-v", one_f_one_b_time, all_live, false},
                                         {"chimera", one_f_one_b_time, live_of_depth, false},
                                         {"pipedream", one_f_one_b_time, live_of_depth, false},
                                         {"pipedream-2bw", one_f_one_b_time, live_of_depth, false},
                                         {"zb-greedy", one_f_one_b_time, all_live, false}};
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
