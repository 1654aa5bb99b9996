// How long the stages took for one micro-batch, from the rows of a timeline, measured or predicted alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "program/timeline.h"

namespace millrace::app {

/// Of one stage on one rank: medians over the micro-batches that it computed in one iteration.
struct StageSeconds {
  std::int64_t rank = 0;
  std::int64_t stage = 0;  ///< index in Program::stages
  Seconds forward{};
  Seconds backward{};  ///< recomputation and both halves included

  bool operator==(const StageSeconds&) const = default;
};

/// Ranks ascend, then stages. Only rows of the first iteration in `rows` count; what took no time is of no rows.
std::vector<StageSeconds> stage_seconds(const std::vector<TimelineRow>& rows);

std::string to_text(const std::vector<StageSeconds>& stages);
std::vector<StageSeconds> stage_seconds_from_text(const std::string& text);

}  // namespace millrace::app
