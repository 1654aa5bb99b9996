// Executes all rank programs at once, without time: whoever still waits when nothing moves is in a deadlock.
#include <deque>

#include <fmt/format.h>

#include "program/describe.h"
#include "program/verifier_parts.h"

namespace millrace::verification {
namespace {

class Execution {
 public:
  explicit Execution(const Program& program)
      : program_(program),
        position_(program.ranks.size(), 0),
        at_norm_(program.ranks.size(), false),
        sent_(program.transfers.size(), false),
        joined_(program.buckets.size(), 0),
        started_(program.ranks.size()) {}

  void run() {
    for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank) ready_.push_back(rank);
    while (!ready_.empty()) {
      const std::size_t rank = ready_.front();
      ready_.pop_front();
      while (position_[rank] < list(rank).size() && step(rank, list(rank)[position_[rank]])) ++position_[rank];
    }
  }

  void report(const Graph& graph, Findings& findings) const {
    for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank) {
      if (position_[rank] == list(rank).size()) continue;
      findings.add(fmt::format("deadlock: {} (instruction {} of {}) waits for ever",
                               describe(graph, program_, static_cast<int>(rank), position_[rank]), position_[rank],
                               list(rank).size()));
    }
  }

 private:
  const std::vector<Instruction>& list(std::size_t rank) const { return program_.ranks[rank].instructions; }

  // False when the instruction has to wait.
  bool step(std::size_t rank, const Instruction& at) {
    switch (at.kind) {
      case InstructionKind::send_activation:
      case InstructionKind::send_gradient:
        // Never blocks, its buffer is its own.
        sent_[static_cast<std::size_t>(at.transfer)] = true;
        wake(program_.transfers[static_cast<std::size_t>(at.transfer)].receiver);
        return true;
      case InstructionKind::receive_activation:
      case InstructionKind::receive_gradient:
        return sent_[static_cast<std::size_t>(at.transfer)];
      case InstructionKind::reduce_gradients:
        ++joined_[static_cast<std::size_t>(at.bucket)];
        started_[rank].push_back(at.bucket);
        if (reduced(at.bucket)) wake_all(program_.buckets[static_cast<std::size_t>(at.bucket)].owners);
        return true;
      case InstructionKind::update_weights:
        return reduced(at.bucket);
      case InstructionKind::reduce_norm:
        return norm(rank);
      default:
        return true;
    }
  }

  bool reduced(std::int32_t bucket) const {
    const std::size_t owners = program_.buckets[static_cast<std::size_t>(bucket)].owners.size();
    return owners == 1 || joined_[static_cast<std::size_t>(bucket)] >= owners;
  }

  // A rank joins once its own buckets are reduced.
  bool norm(std::size_t rank) {
    for (const std::int32_t bucket : started_[rank]) {
      if (!reduced(bucket)) return false;
    }
    if (!at_norm_[rank]) {
      at_norm_[rank] = true;
      if (++norms_ == program_.ranks.size()) {
        for (std::size_t other = 0; other < program_.ranks.size(); ++other) ready_.push_back(other);
      }
    }
    return norms_ == program_.ranks.size();
  }

  void wake(int rank) { ready_.push_back(static_cast<std::size_t>(rank)); }
  void wake_all(const std::vector<int>& ranks) {
    for (const int rank : ranks) wake(rank);
  }

  const Program& program_;
  std::vector<std::size_t> position_;
  std::vector<bool> at_norm_;
  std::size_t norms_ = 0;
  std::vector<bool> sent_;
  std::vector<std::size_t> joined_;                 // ranks that started the reduction, by bucket
  std::vector<std::vector<std::int32_t>> started_;  // reductions, by rank
  std::deque<std::size_t> ready_;
};

}  // namespace

void check_execution(const Graph& graph, const Program& program, Findings& findings) {
  Execution execution(program);
  execution.run();
  execution.report(graph, findings);
}

}  // namespace millrace::verification
