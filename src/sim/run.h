// Runs a job in simulated time.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "sim/job.h"
#include "sim/noise.h"

namespace millrace::sim {

/// How transfers share what they go through.
enum class Contention : std::uint8_t {
  none,    ///< each as if it were alone
  fixed,   ///< a rank sends one message and receives one message at a time; what ranks share is divided among them
           ///< beforehand, in the edges' and collectives' times (sim/network.h)
  dynamic  ///< flows in flight share each port in proportion to their loads
};

/// How owners sum gradients, where times come from a cluster (sim/network.h).
enum class Reduction : std::uint8_t { all_reduce, parameter_server };

struct Options {
  Contention contention = Contention::none;
  bool half_duplex = false;  ///< fixed: sends and receives of a rank share one channel
  Reduction reduction = Reduction::all_reduce;
  double overlap = 1;  ///< factor on computation and on transfers of a rank while both go on (METHODS 5)
  Noise noise{};
  int iterations = 1;  ///< one after the other without a gap
  bool rows = false;   ///< keep when each step ran
};

struct RankOutcome {
  Seconds end{};
  Seconds busy{};                                 ///< computation
  std::array<Seconds, kTrafficKinds> exposed{};   ///< computing nothing while a transfer that it waits for is in flight
  std::array<Seconds, kTrafficKinds> transfer{};  ///< in flight: messages received and collectives
};

struct StepRow {
  std::int32_t rank = 0;
  std::int32_t step = 0;  ///< in its program, iterations counted on
  Seconds start{};        ///< start_collective: of the collective, not of the step
  Seconds end{};
};

struct Outcome {
  Seconds makespan{};        ///< end of the last step of any rank
  Seconds iteration_time{};  ///< makespan of one iteration; else (end of the last − end of the first) / (n − 1)
  std::vector<RankOutcome> ranks;
  std::vector<StepRow> rows;  ///< in no order that means anything
  std::int64_t steps = 0;     ///< executed
};

/// A rank does one step at a time. A message starts when it was sent and its receive was posted (receive_window ahead).
/// Collectives that a rank has started run one after the other on its collective channel, beside computation:
/// end_k = max(ready_k, end_{k−1}) + time_k (METHODS 5); `collective` steps wait for their members alone. With noise, a
/// rank that stands for several takes what is expected of the slowest of the group that it meets next.
/// \pre check(job). \throws Error  (ExitCode::internal) when the job cannot end; names a rank and its step.
Outcome run(const Job& job, const Options& options = {});

}  // namespace millrace::sim
