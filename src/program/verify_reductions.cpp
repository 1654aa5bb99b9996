// Buckets hold every parameter and buffer with its owners, and are reduced, measured and updated once, in one order.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "program/verifier_parts.h"

namespace millrace::verification {
namespace {

void check_owners(const Graph& graph, const Program& program, Findings& findings) {
  std::map<TensorId, std::set<int>> owners;
  for (const ProgramStage& stage : program.stages) {
    for (const OpId op : stage.ops) {
      for (const auto* list : {&graph.op(op).parameters, &graph.op(op).buffers}) {
        for (const TensorId tensor : *list) owners[tensor].insert(stage.ranks.begin(), stage.ranks.end());
      }
    }
  }
  for (std::size_t b = 0; b < program.buckets.size(); ++b) {
    const Bucket& bucket = program.buckets[b];
    for (const TensorId tensor : bucket.tensors) {
      const auto place = owners.find(tensor);
      if (place == owners.end()) {
        findings.add(
            fmt::format("{} is in bucket {}, but in no stage or in another bucket too", graph.tensor(tensor).name, b));
        continue;
      }
      if (!std::equal(place->second.begin(), place->second.end(), bucket.owners.begin(), bucket.owners.end())) {
        findings.add(fmt::format("{} belongs to ranks {}, its bucket {} to ranks {}", graph.tensor(tensor).name,
                                 fmt::join(place->second, ", "), b, fmt::join(bucket.owners, ", ")));
      }
      owners.erase(place);
    }
  }
  for (const auto& [tensor, ranks] : owners) {
    findings.add(fmt::format("{} is in no bucket: it would never be updated", graph.tensor(tensor).name));
  }
}

class RankCheck {
 public:
  RankCheck(const Program& program, int rank, Findings& findings)
      : program_(program), rank_(rank), findings_(findings), reduced_(program.buckets.size(), 0), updated_(reduced_) {}

  void run() {
    const std::vector<Instruction>& list = program_.ranks[static_cast<std::size_t>(rank_)].instructions;
    for (std::size_t i = 0; i < list.size(); ++i) step(list[i], i);
    const int wanted = program_.training ? 1 : 0;
    if (norms_ != wanted)
      findings_.add(fmt::format("rank {} enters reduce_norm {} times instead of {}", rank_, norms_, wanted));
    for (std::size_t b = 0; b < program_.buckets.size(); ++b) {
      const std::vector<int>& owners = program_.buckets[b].owners;
      const bool owns = program_.training && std::binary_search(owners.begin(), owners.end(), rank_);
      expect(b, "reduces", reduced_[b], owns && owners.size() > 1);
      expect(b, "updates", updated_[b], owns);
    }
  }

 private:
  void expect(std::size_t bucket, std::string_view what, int times, bool once) {
    if (times == (once ? 1 : 0)) return;
    findings_.add(fmt::format("rank {} {} bucket {} {} times instead of {}", rank_, what, bucket, times, once ? 1 : 0));
  }

  void fault(std::size_t position, std::string_view why) {
    findings_.add(fmt::format("rank {}, instruction {}: {}", rank_, position, why));
  }

  void step(const Instruction& at, std::size_t i) {
    switch (at.kind) {
      case InstructionKind::backward:
      case InstructionKind::backward_input:
      case InstructionKind::backward_weight:
        if (started_) fault(i, "a backward after the first reduction, norm or update: its gradients would be lost");
        break;
      case InstructionKind::reduce_gradients:
        started_ = true;
        if (norms_ > 0) fault(i, fmt::format("bucket {} is reduced after the norm", at.bucket));
        if (at.bucket <= last_)
          fault(i, fmt::format("bucket {} is reduced after bucket {}; all ranks keep one order", at.bucket, last_));
        last_ = at.bucket;
        ++reduced_[static_cast<std::size_t>(at.bucket)];
        break;
      case InstructionKind::reduce_norm:
        started_ = true;
        ++norms_;
        break;
      case InstructionKind::update_weights:
        started_ = true;
        if (norms_ == 0) fault(i, fmt::format("bucket {} is updated before the norm is known", at.bucket));
        ++updated_[static_cast<std::size_t>(at.bucket)];
        break;
      default:
        if (updated_any()) fault(i, "computation or a message after an update");
        break;
    }
  }

  bool updated_any() const {
    return std::any_of(updated_.begin(), updated_.end(), [](int times) { return times > 0; });
  }

  const Program& program_;
  int rank_;
  Findings& findings_;
  std::vector<int> reduced_;
  std::vector<int> updated_;
  int norms_ = 0;
  bool started_ = false;
  std::int32_t last_ = -1;
};

}  // namespace

void check_reductions(const Graph& graph, const Program& program, Findings& findings) {
  check_owners(graph, program, findings);
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    RankCheck(program, static_cast<int>(rank), findings).run();
  }
}

}  // namespace millrace::verification
