// Segments go from the last operators to the first, as a backward does.
#include "program/weight_segments.h"

#include <algorithm>

#include "base/index.h"

namespace millrace {

std::span<const OpId> weight_ops(const ProgramStage& stage, std::int32_t segment) {
  const std::span<const OpId> all(stage.ops);
  if (segment < 0) return all;
  const std::vector<OpId>& cuts = stage.weight_cuts;
  const auto position = [&](std::size_t cut) {
    return at(std::lower_bound(all.begin(), all.end(), cuts[cut]) - all.begin());
  };
  const std::size_t from = at(segment) < cuts.size() ? position(at(segment)) : 0;
  const std::size_t to = segment > 0 ? position(at(segment) - 1) : all.size();
  return all.subspan(from, to - from);
}

bool ends_micro_batch(const Program& program, const Instruction& at) {
  switch (at.kind) {
    case InstructionKind::forward:
      return !program.training && at.segment <= 0;
    case InstructionKind::backward:
      return program.training && at.segment <= 0;
    case InstructionKind::backward_weight:
      return at.segment < 0 ||
             static_cast<std::size_t>(at.segment) == program.stages[millrace::at(at.stage)].weight_cuts.size();
    default:
      return false;
  }
}

}  // namespace millrace
