// Steps through every rank's list and adds up what its live micro-batches keep.
#include <algorithm>

#include <fmt/format.h>

#include "program/describe.h"
#include "program/unroll.h"
#include "program/verifier.h"
#include "program/verifier_parts.h"
#include "program/weight_segments.h"

namespace millrace {
namespace {

// What an instruction adds to the activations of its rank.
std::int64_t change(const Program& program, const StageCosts& costs, const Instruction& at) {
  const bool weights = at.kind == InstructionKind::backward_weight;
  if (at.stage < 0 || (weights ? !ends_micro_batch(program, at) : at.segment > 0)) return 0;
  const auto s = static_cast<std::size_t>(at.stage);
  const std::int64_t all = costs.activations.at(s).value();
  const std::int64_t kept = costs.kept_for_weights.empty() ? all : costs.kept_for_weights.at(s).value();
  switch (at.kind) {
    case InstructionKind::forward:
      return all;
    case InstructionKind::backward:
      return -all;
    case InstructionKind::backward_input:
      return kept - all;
    case InstructionKind::backward_weight:
      return -kept;
    default:
      return 0;
  }
}

}  // namespace

std::vector<Problem> verify_memory(const Graph& graph, const Program& program, const StageCosts& costs) {
  verification::Findings findings;
  if (costs.limit.empty() || costs.activations.empty() || !program.training) return findings.take();
  const auto lists = unroll(program, verification::iterations_to_check(program));
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    const std::int64_t limit = costs.limit.at(rank).value();
    std::int64_t bytes = 0;
    std::int64_t peak = 0;
    std::size_t peak_position = 0;
    for (const UnrolledInstruction& step : lists[rank]) {
      const auto position = static_cast<std::size_t>(step.position);
      bytes += change(program, costs, program.ranks[rank].instructions[position]);
      if (bytes > peak) {
        peak = bytes;
        peak_position = position;
      }
    }
    if (peak <= limit) continue;
    findings.add(fmt::format("{} (instruction {}): the rank keeps {} bytes of activations then; its limit is {}",
                             describe(graph, program, static_cast<int>(rank), peak_position), peak_position, peak,
                             limit));
  }
  return findings.take();
}

}  // namespace millrace
