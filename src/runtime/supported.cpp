// Refuses before anything starts what would fail in the midst of a step.
#include "runtime/supported.h"

#include <vector>

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace::runtime {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw InvalidInput(what + ": it can be planned and simulated, not run");
}

}  // namespace

void require_supported(const Program& program) {
  std::vector<const ProgramStage*> held(program.ranks.size(), nullptr);
  for (const ProgramStage& stage : program.stages) {
    const std::string where = fmt::format("stage {} of pipeline {}", stage.ref.stage, stage.ref.pipeline);
    if (stage.tensor_parallel != 1) refuse(fmt::format("{} has tensor_parallel {}", where, stage.tensor_parallel));
    if (!stage.recompute.empty()) refuse(fmt::format("{} recomputes {} operators", where, stage.recompute.size()));
    for (const int rank : stage.ranks) {
      const ProgramStage*& other = held[static_cast<std::size_t>(rank)];
      if (other != nullptr) {
        refuse(fmt::format("device {} holds stage {} of pipeline {} and {}", rank, other->ref.stage,
                           other->ref.pipeline, where));
      }
      other = &stage;
    }
  }
  if (program.training && !program.norm) refuse("the schedule updates weights without waiting for the gradient norm");
}

}  // namespace millrace::runtime
