// A timeline in the trace format that Chrome and Perfetto open.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "program/program.h"
#include "program/timeline.h"

namespace millrace::record {

/// Values of a rank that change in steps, such as bytes by kind.
struct TraceCounter {
  std::int32_t rank = 0;
  std::string name;
  struct Sample {
    Seconds time{};
    std::vector<std::pair<std::string, std::int64_t>> values;
  };
  std::vector<Sample> samples;
};

/// JSON of one object with `traceEvents`. A rank is a process of four threads: computation and the collectives that
/// it waits in, sends, receives (while the rank waits) and reductions; slices of a thread follow each other. A flow
/// leads from each send to its receive. Times are microseconds; pids, tids and flow numbers integers.
std::string chrome_trace(const Program& program, const Timeline& timeline, const std::string& title,
                         const std::vector<TraceCounter>& counters = {});

}  // namespace millrace::record
