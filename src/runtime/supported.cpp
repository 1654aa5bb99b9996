// Refuses before anything starts what would fail in the midst of a step.
#include "runtime/supported.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace::runtime {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw InvalidInput(what + ": it can be planned and simulated, not run");
}

bool any(const Program& program, bool (*is)(const Instruction&)) {
  return std::any_of(program.ranks.begin(), program.ranks.end(), [&](const RankProgram& rank) {
    return std::any_of(rank.instructions.begin(), rank.instructions.end(), is);
  });
}

}  // namespace

void require_supported(const Program& program, kernels::Precision precision, double clip_norm) {
  for (const ProgramStage& stage : program.stages) {
    if (stage.tensor_parallel > 1 && precision == kernels::Precision::bf16) {
      refuse(
          fmt::format("train.precision bf16 with stage {} of pipeline {}, which has tensor_parallel {} (its devices "
                      "would round partial sums before they are added; allowed with bf16: tensor_parallel 1; "
                      "allowed with that plan: precision fp32, fp64)",
                      stage.ref.stage, stage.ref.pipeline, stage.tensor_parallel));
    }
    if (stage.tensor_parallel == 1 || stage.parts != nullptr) continue;
    refuse(fmt::format("stage {} of pipeline {} has tensor_parallel {}", stage.ref.stage, stage.ref.pipeline,
                       stage.tensor_parallel));
  }
  // The samples of a batch are at hand in the round in which its iteration begins.
  if (any(program, [](const Instruction& at) { return at.kind == InstructionKind::forward && at.lag != 0; })) {
    refuse("the program computes forwards of an iteration that began before");
  }
  if (clip_norm > 0 && program.training && !program.norm) {
    throw InvalidInput(
        fmt::format("train.clip_norm {}: the schedule updates weights without waiting for the global gradient norm; "
                    "leave train.clip_norm out, or take a synchronous schedule",
                    clip_norm));
  }
}

}  // namespace millrace::runtime
