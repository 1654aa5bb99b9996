// Executes all rank programs at once, without time: whoever still waits when nothing moves is in a deadlock.
#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "program/describe.h"
#include "program/unroll.h"
#include "program/verifier_parts.h"

namespace millrace::verification {
namespace {

class Execution {
 public:
  explicit Execution(const Program& program)
      : program_(program),
        iterations_(iterations_to_check(program)),
        lists_(unroll(program, iterations_)),
        position_(program.ranks.size(), 0),
        at_norm_(program.ranks.size(), false),
        norms_(static_cast<std::size_t>(iterations_), 0),
        sent_(program.transfers.size() * static_cast<std::size_t>(iterations_), false),
        joined_(program.buckets.size()),
        started_(program.ranks.size(), std::vector<std::size_t>(program.buckets.size(), 0)),
        arrived_(program.ranks.size(), false) {}

  void run() {
    for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank) ready_.push_back(rank);
    while (!ready_.empty()) {
      const std::size_t rank = ready_.front();
      ready_.pop_front();
      while (position_[rank] < lists_[rank].size() && step(rank)) ++position_[rank];
    }
  }

  void report(const Graph& graph, Findings& findings) const {
    for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank) {
      if (position_[rank] == lists_[rank].size()) continue;
      const auto position = static_cast<std::size_t>(lists_[rank][position_[rank]].position);
      findings.add(fmt::format("deadlock: {} (instruction {} of {}) waits for ever{}",
                               describe(graph, program_, static_cast<int>(rank), position), position,
                               program_.ranks[rank].instructions.size(), other_side(graph, rank)));
    }
  }

 private:
  const Instruction& at(std::size_t rank) const {
    return program_.ranks[rank].instructions[static_cast<std::size_t>(lists_[rank][position_[rank]].position)];
  }

  // The instruction of another rank that a waiting receive needs.
  std::string other_side(const Graph& graph, std::size_t rank) const {
    const Instruction& receive = at(rank);
    if (receive.transfer < 0) return "";
    const std::int32_t sender = program_.transfers[static_cast<std::size_t>(receive.transfer)].sender;
    const std::vector<Instruction>& list = program_.ranks[static_cast<std::size_t>(sender)].instructions;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].transfer != receive.transfer) continue;
      return fmt::format(" for {} (instruction {} of {})", describe(graph, program_, sender, i), i, list.size());
    }
    return "";
  }

  std::size_t message(std::size_t rank) const {
    return static_cast<std::size_t>(at(rank).transfer) * static_cast<std::size_t>(iterations_) +
           static_cast<std::size_t>(lists_[rank][position_[rank]].iteration);
  }

  // False when the instruction has to wait.
  bool step(std::size_t rank) {
    const Instruction& now = at(rank);
    switch (now.kind) {
      case InstructionKind::send_activation:
      case InstructionKind::send_gradient:
        // Never blocks, its buffer is its own.
        sent_[message(rank)] = true;
        wake(program_.transfers[static_cast<std::size_t>(now.transfer)].receiver);
        return true;
      case InstructionKind::receive_activation:
      case InstructionKind::receive_gradient:
        return sent_[message(rank)];
      case InstructionKind::reduce_gradients:
        start_reduction(rank, static_cast<std::size_t>(now.bucket));
        return true;
      case InstructionKind::update_weights:
        return reduced(rank, static_cast<std::size_t>(now.bucket));
      case InstructionKind::reduce_norm:
        return norm(rank);
      case InstructionKind::all_reduce:
      case InstructionKind::all_gather:
      case InstructionKind::reduce_scatter:
      case InstructionKind::all_to_all:
        return collective(rank, now);
      default:
        return true;
    }
  }

  // The n-th reduction of a bucket on one rank meets the n-th of the others.
  void start_reduction(std::size_t rank, std::size_t bucket) {
    const std::size_t number = started_[rank][bucket]++;
    if (joined_[bucket].size() <= number) joined_[bucket].resize(number + 1, 0);
    ++joined_[bucket][number];
    for (const int owner : program_.buckets[bucket].owners) wake(owner);
  }

  bool reduced(std::size_t rank, std::size_t bucket) const {
    const std::size_t owners = program_.buckets[bucket].owners.size();
    const std::size_t started = started_[rank][bucket];
    return owners == 1 || (started > 0 && joined_[bucket][started - 1] >= owners);
  }

  // A rank joins once its own buckets are reduced.
  bool norm(std::size_t rank) {
    for (std::size_t bucket = 0; bucket < program_.buckets.size(); ++bucket) {
      if (started_[rank][bucket] > 0 && !reduced(rank, bucket)) return false;
    }
    std::size_t& arrived = norms_[static_cast<std::size_t>(lists_[rank][position_[rank]].iteration)];
    if (!at_norm_[rank]) {
      at_norm_[rank] = true;
      if (++arrived == program_.ranks.size()) {
        for (std::size_t other = 0; other < program_.ranks.size(); ++other) ready_.push_back(other);
      }
    }
    if (arrived < program_.ranks.size()) return false;
    at_norm_[rank] = false;
    return true;
  }

  // All shards of the replica stand at the same collective of the same computation.
  bool collective(std::size_t rank, const Instruction& now) {
    const ProgramStage& stage = program_.stages[static_cast<std::size_t>(now.stage)];
    const auto index = static_cast<std::size_t>(
        std::find(stage.ranks.begin(), stage.ranks.end(), static_cast<int>(rank)) - stage.ranks.begin());
    const std::size_t replica = stage.replica_of(index);
    const Meeting key{now.collective, replica, now.micro_batch, lists_[rank][position_[rank]].iteration};
    if (!arrived_[rank]) {
      arrived_[rank] = true;
      ++meetings_[key];
      for (int t = 0; t < stage.tensor_parallel; ++t) {
        wake(stage.ranks[replica * static_cast<std::size_t>(stage.tensor_parallel) + static_cast<std::size_t>(t)]);
      }
    }
    // Recomputation comes to the same collective again: then the count has gone on.
    const int turn = turns_[{rank, key}];
    if (meetings_[key] < (turn + 1) * stage.tensor_parallel) return false;
    ++turns_[{rank, key}];
    arrived_[rank] = false;
    return true;
  }

  void wake(int rank) { ready_.push_back(static_cast<std::size_t>(rank)); }

  using Meeting = std::tuple<std::int32_t, std::size_t, std::int32_t, std::int32_t>;

  const Program& program_;
  int iterations_;
  std::vector<std::vector<UnrolledInstruction>> lists_;
  std::vector<std::size_t> position_;
  std::vector<bool> at_norm_;
  std::vector<std::size_t> norms_;                 // by iteration: ranks that have come to its norm
  std::vector<bool> sent_;                         // [message][iteration]
  std::vector<std::vector<std::size_t>> joined_;   // [bucket][number]: ranks that started it
  std::vector<std::vector<std::size_t>> started_;  // [rank][bucket]
  std::vector<bool> arrived_;                      // at the collective that the rank stands at
  std::map<Meeting, int> meetings_;                // arrivals
  std::map<std::pair<std::size_t, Meeting>, int> turns_;
  std::deque<std::size_t> ready_;
};

}  // namespace

void check_execution(const Graph& graph, const Program& program, Findings& findings) {
  Execution execution(program);
  execution.run();
  execution.report(graph, findings);
}

}  // namespace millrace::verification
