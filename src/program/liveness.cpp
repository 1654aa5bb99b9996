// Steps through rank programs counting live micro-batches.
#include "program/liveness.h"

#include <algorithm>

namespace millrace {
namespace {

constexpr std::int32_t kAllStages = -1;

}  // namespace

int peak_live_micro_batches(const RankProgram& rank, std::int32_t stage, bool training) {
  int live = 0;
  int peak = 0;
  for (const Instruction& instruction : rank.instructions) {
    if (stage != kAllStages && instruction.stage != stage) continue;
    if (instruction.kind == InstructionKind::forward) peak = std::max(peak, ++live);
    const bool frees =
        training ? instruction.kind == InstructionKind::backward || instruction.kind == InstructionKind::backward_weight
                 : instruction.kind == InstructionKind::forward;
    if (frees) --live;
  }
  return peak;
}

std::vector<int> peak_live_micro_batches(const Program& program) {
  std::vector<int> peaks;
  for (const RankProgram& rank : program.ranks) {
    peaks.push_back(peak_live_micro_batches(rank, kAllStages, program.training));
  }
  return peaks;
}

}  // namespace millrace
