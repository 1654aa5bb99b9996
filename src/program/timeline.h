// What an interpreter of a program returns: when each instruction ran, row by row, predicted or measured.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "program/instruction.h"

namespace millrace {

struct TimelineRow {
  std::int32_t rank = 0;
  std::int32_t position = 0;  ///< in the rank's instruction list
  Instruction instruction;
  Seconds start{};
  Seconds end{};
  std::int32_t iteration = 0;  ///< that it belongs to, where there are several
};

/// Rows ordered by rank, then by when the rank came to them. Times count from the start of the iteration.
struct Timeline {
  std::vector<TimelineRow> rows;
};

}  // namespace millrace
