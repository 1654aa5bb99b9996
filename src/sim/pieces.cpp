// Cuts of a computation, from the program's collectives.
#include "sim/pieces.h"

#include <algorithm>

#include "program/weight_segments.h"

namespace millrace::sim {
namespace {

std::vector<OpId> cuts(const Program& program, std::int32_t stage, bool backward) {
  std::vector<OpId> ops;
  for (const TensorCollective& collective : program.collectives) {
    if (collective.stage == stage && collective.backward == backward) ops.push_back(collective.op);
  }
  std::sort(ops.begin(), ops.end());
  ops.erase(std::unique(ops.begin(), ops.end()), ops.end());
  return ops;
}

}  // namespace

std::span<const OpId> ops_of(const Program& program, const Instruction& computation) {
  const ProgramStage& stage = program.stages[static_cast<std::size_t>(computation.stage)];
  const bool again = computation.kind == InstructionKind::recompute;
  const std::vector<OpId>& all = again ? stage.recompute : stage.ops;
  if (computation.segment < 0) return all;
  if (computation.kind == InstructionKind::backward_weight) return weight_ops(stage, computation.segment);
  const bool backward = !again && computation.kind != InstructionKind::forward;
  std::vector<OpId> ends = cuts(program, computation.stage, backward);
  const auto k = static_cast<std::size_t>(computation.segment);
  // The first operator behind the k-th cut, in ascending order.
  const auto behind = [&](std::size_t cut) { return std::upper_bound(all.begin(), all.end(), ends[cut]); };
  if (!backward) {
    const auto from = k == 0 ? all.begin() : behind(k - 1);
    const auto to = k < ends.size() ? behind(k) : all.end();
    return {from, to};
  }
  std::reverse(ends.begin(), ends.end());
  const auto before = [&](std::size_t cut) { return std::lower_bound(all.begin(), all.end(), ends[cut]); };
  const auto from = k < ends.size() ? before(k) : all.begin();
  const auto to = k == 0 ? all.end() : before(k - 1);
  return {from, to};
}

}  // namespace millrace::sim
