// Every replica computes every micro-batch once, in a legal order, and its messages touch only what exists then.
#include <deque>

#include <fmt/format.h>

#include "program/describe.h"
#include "program/verifier_parts.h"

namespace millrace::verification {
namespace {

enum class Progress : std::uint8_t { waiting, forward_done, input_done, all_done };

// Steps through one rank's list.
class RankCheck {
 public:
  RankCheck(const Graph& graph, const Program& program, int rank, Findings& findings)
      : graph_(graph), program_(program), rank_(rank), findings_(findings), progress_(program.stages.size()) {
    for (std::size_t s = 0; s < program.stages.size(); ++s) {
      for (const int r : program.stages[s].ranks) {
        if (r == rank) progress_[s].assign(program.stages[s].rows.size(), Progress::waiting);
      }
    }
  }

  void run() {
    const std::vector<Instruction>& list = program_.ranks[static_cast<std::size_t>(rank_)].instructions;
    for (position_ = 0; position_ < list.size(); ++position_) step(list[position_]);
    for (const Instruction& receive : received_) {
      findings_.add(fmt::format("rank {}: {} comes after the computation that reads it", rank_,
                                describe(graph_, program_, receive)));
    }
    for (std::size_t s = 0; s < progress_.size(); ++s) {
      for (std::size_t k = 0; k < progress_[s].size(); ++k) {
        const Progress wanted = program_.training ? Progress::all_done : Progress::forward_done;
        if (progress_[s][k] == wanted) continue;
        const StageRef ref = program_.stages[s].ref;
        findings_.add(fmt::format("rank {} never completes micro-batch {} of stage {} of pipeline {}: {}", rank_, k,
                                  ref.stage, ref.pipeline, missing(progress_[s][k])));
      }
    }
  }

 private:
  static std::string_view missing(Progress progress) {
    if (progress == Progress::waiting) return "no forward";
    return progress == Progress::forward_done ? "no backward" : "no backward_weight";
  }

  void fault(std::string_view why) {
    findings_.add(fmt::format("{} (instruction {}): {}", describe(graph_, program_, rank_, position_), position_, why));
  }

  void step(const Instruction& at) {
    if (at.stage < 0) return;  // reductions and updates
    if (progress_[static_cast<std::size_t>(at.stage)].empty()) return fault("the stage is not on this rank");
    Progress& progress = progress_[static_cast<std::size_t>(at.stage)][static_cast<std::size_t>(at.micro_batch)];
    switch (at.kind) {
      case InstructionKind::receive_activation:
      case InstructionKind::receive_gradient:
        received_.push_back(at);
        return;
      case InstructionKind::send_activation:
        if (!output_exists(at, progress)) fault("the stage's output does not exist at this point");
        return;
      case InstructionKind::send_gradient:
        if (at.stage != gradient_stage_ || at.micro_batch != gradient_micro_batch_) {
          fault("it must come after the backward of its micro-batch and before the next");
        }
        return;
      default:
        break;
    }
    use_received(at);
    compute(at, progress);
  }

  // Received rows go to the very next computation.
  void use_received(const Instruction& at) {
    const bool forward = at.kind == InstructionKind::forward;
    for (const Instruction& receive : received_) {
      const bool fits = receive.stage == at.stage && receive.micro_batch == at.micro_batch &&
                        at.kind != InstructionKind::backward_weight &&
                        forward == (receive.kind == InstructionKind::receive_activation);
      if (!fits)
        fault(
            fmt::format("the computation after {} must be the one that reads it", describe(graph_, program_, receive)));
    }
    received_.clear();
  }

  bool output_exists(const Instruction& at, Progress progress) const {
    if (program_.training) return progress == Progress::forward_done || progress == Progress::input_done;
    for (const auto& [stage, micro_batch] : recent_) {
      if (stage == at.stage && micro_batch == at.micro_batch) return true;
    }
    return false;
  }

  void compute(const Instruction& at, Progress& progress) {
    if (at.kind == InstructionKind::forward) {
      if (progress != Progress::waiting) return fault("this micro-batch was computed forward before");
      progress = Progress::forward_done;
      const int slots = program_.stages[static_cast<std::size_t>(at.stage)].slots;
      recent_.emplace_back(at.stage, at.micro_batch);
      if (recent_.size() > static_cast<std::size_t>(slots)) recent_.pop_front();
      if (program_.training && ++live_ > slots) fault(fmt::format("more live micro-batches than the {} slots", slots));
      return;
    }
    if (!program_.training) return fault("an evaluation program has no backward");
    if (at.kind == InstructionKind::backward_weight) {
      if (progress != Progress::input_done) return fault("its backward_input has not run, or it ran before");
    } else {
      if (progress == Progress::waiting) return fault("its forward has not run");
      if (progress != Progress::forward_done) return fault("this micro-batch was computed backward before");
      gradient_stage_ = at.stage;
      gradient_micro_batch_ = at.micro_batch;
    }
    progress = at.kind == InstructionKind::backward_input ? Progress::input_done : Progress::all_done;
    if (progress == Progress::all_done) --live_;
  }

  const Graph& graph_;
  const Program& program_;
  int rank_;
  Findings& findings_;
  std::size_t position_ = 0;
  std::vector<std::vector<Progress>> progress_;               // [stage][micro-batch]; empty for stages of other ranks
  std::vector<Instruction> received_;                         // since the last computation
  std::deque<std::pair<std::int32_t, std::int32_t>> recent_;  // stage and micro-batch of the last forwards, one a slot
  int live_ = 0;
  std::int32_t gradient_stage_ = -1;  // of the last backward: its input gradients still exist
  std::int32_t gradient_micro_batch_ = -1;
};

}  // namespace

void check_compute(const Graph& graph, const Program& program, Findings& findings) {
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    RankCheck(graph, program, static_cast<int>(rank), findings).run();
  }
}

}  // namespace millrace::verification
