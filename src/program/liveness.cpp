// Steps through rank programs counting live micro-batches.
#include "program/liveness.h"

#include <algorithm>

#include "program/unroll.h"
#include "program/weight_segments.h"

namespace millrace {
namespace {

constexpr std::int32_t kAllStages = -1;

}  // namespace

std::vector<int> peak_live_micro_batches(const Program& program, std::int32_t stage) {
  std::vector<int> peaks;
  // Every state of a program that does not flush is reached by the iteration after the first that drains.
  const auto lists = unroll(program, program.overlap + 1);
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    int live = 0;
    int peak = 0;
    for (const UnrolledInstruction& step : lists[rank]) {
      const Instruction& at = program.ranks[rank].instructions[static_cast<std::size_t>(step.position)];
      if (stage != kAllStages && at.stage != stage) continue;
      if (at.kind == InstructionKind::forward && at.segment <= 0) peak = std::max(peak, ++live);
      if (ends_micro_batch(program, at)) --live;
    }
    peaks.push_back(peak);
  }
  return peaks;
}

}  // namespace millrace
