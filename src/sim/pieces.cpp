// Cuts of a computation, from the program's collectives.
#include "sim/pieces.h"

#include <algorithm>

#include "program/rank_links.h"
#include "program/weight_segments.h"

namespace millrace::sim {
namespace {

std::vector<OpId> cuts(const Program& program, const Instruction& computation) {
  std::vector<OpId> ops;
  for (const std::int32_t c : collectives_of(program, computation)) {
    ops.push_back(program.collectives[static_cast<std::size_t>(c)].op);
  }
  std::sort(ops.begin(), ops.end());
  return ops;
}

std::size_t part_of(const ProgramStage& stage, int rank) {
  const auto place = std::find(stage.ranks.begin(), stage.ranks.end(), rank) - stage.ranks.begin();
  return static_cast<std::size_t>(place) % static_cast<std::size_t>(stage.tensor_parallel);
}

}  // namespace

Seconds time_of(const Piece& piece, const Program& program, const SimCosts& costs) {
  if (piece.rows == 0) return Seconds(0);
  const ProgramStage& stage = program.stages[static_cast<std::size_t>(piece.stage)];
  if (stage.parts == nullptr) return costs.compute(piece);
  const std::size_t part = part_of(stage, piece.rank);
  Seconds time{};
  for (std::size_t i = 0; i < piece.ops.size(); ++i) {
    Piece one = piece;
    one.ops = piece.ops.subspan(i, 1);
    time += costs.compute(one) * stage.parts->share(piece.ops[i], part);
  }
  return time;
}

std::span<const OpId> ops_of(const Program& program, const Instruction& computation) {
  const ProgramStage& stage = program.stages[static_cast<std::size_t>(computation.stage)];
  const bool again = computation.kind == InstructionKind::recompute;
  const std::vector<OpId>& all = again ? stage.recompute : stage.ops;
  if (computation.segment < 0) return all;
  if (computation.kind == InstructionKind::backward_weight) return weight_ops(stage, computation.segment);
  const bool backward = !again && computation.kind != InstructionKind::forward;
  std::vector<OpId> ends = cuts(program, computation);
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
