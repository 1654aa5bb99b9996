// Buckets hold every parameter and buffer with its owners, and are reduced, measured and updated once, in one order.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/index.h"
#include "program/attached.h"
#include "program/buckets.h"
#include "program/describe.h"
#include "program/part_collectives.h"
#include "program/unroll.h"
#include "program/verifier_parts.h"
#include "program/weight_segments.h"

namespace millrace::verification {
namespace {

using Part = std::pair<TensorId, int>;  // tensor and shard

void check_owners(const Graph& graph, const Program& program, Findings& findings) {
  std::map<Part, std::set<int>> owners;
  for (const ProgramStage& stage : program.stages) {
    for (const OpId op : stage.ops) {
      for (const auto* list : {&graph.op(op).parameters, &graph.op(op).buffers}) {
        for (const TensorId tensor : *list) {
          for (std::size_t i = 0; i < stage.ranks.size(); ++i) {
            const int shard = static_cast<int>(i % static_cast<std::size_t>(shards_of(stage, tensor)));
            owners[{tensor, shard}].insert(stage.ranks[i]);
          }
        }
      }
    }
  }
  for (std::size_t b = 0; b < program.buckets.size(); ++b) {
    const Bucket& bucket = program.buckets[b];
    for (const TensorId tensor : bucket.tensors) {
      const auto place = owners.find({tensor, bucket.shard});
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
  for (const auto& [part, ranks] : owners) {
    findings.add(fmt::format("{} is in no bucket: it would never be updated", graph.tensor(part.first).name));
  }
}

// Buckets of one set of owners are reduced and gathered in one order by all of them: theirs is one channel.
void check_order_of_groups(const Graph& graph, const Program& program, Findings& findings) {
  struct First {
    int rank = -1;
    std::vector<std::size_t> positions;
  };
  std::map<std::vector<int>, First> groups;
  const auto bucket_at = [&](int rank, std::size_t position) {
    const Instruction& at = program.ranks[static_cast<std::size_t>(rank)].instructions[position];
    return std::pair(at.kind, at.bucket);
  };
  for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank) {
    std::map<std::vector<int>, std::vector<std::size_t>> own;
    const std::vector<Instruction>& list = program.ranks[static_cast<std::size_t>(rank)].instructions;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].kind != InstructionKind::reduce_gradients && list[i].kind != InstructionKind::gather_weights)
        continue;
      own[program.buckets[static_cast<std::size_t>(list[i].bucket)].owners].push_back(i);
    }
    for (auto& [owners, positions] : own) {
      const auto [place, is_new] = groups.try_emplace(owners, First{rank, positions});
      const First& first = place->second;
      if (is_new) continue;
      for (std::size_t i = 0; i < std::min(positions.size(), first.positions.size()); ++i) {
        if (bucket_at(rank, positions[i]) == bucket_at(first.rank, first.positions[i])) continue;
        findings.add(
            fmt::format("{} (instruction {}) meets {} (instruction {}): ranks that share buckets reduce and "
                        "gather them in one order",
                        describe(graph, program, first.rank, first.positions[i]), first.positions[i],
                        describe(graph, program, rank, positions[i]), positions[i]));
        break;
      }
    }
  }
}

// Gradients of one bucket on one rank.
struct Gathered {
  std::size_t since_update = 0;       // contributions
  std::size_t per_update = 0;         // of the first update
  std::size_t last_contribution = 0;  // position
  std::size_t reduction = 0;          // position
  bool reduced = false;
  bool unvalidated = false;  // updated, and its norm is not known
  bool in_parts = false;     // updated, and the parts of others are not asked for
  int reductions = 0;
  int updates = 0;
  int updated_in = -1;     // iteration
  int listed_updates = 0;  // in the rank's list
  int iteration = -1;      // of the contributions
};

class ReductionCheck {
 public:
  ReductionCheck(const Graph& graph, const Program& program, int rank, Findings& findings)
      : graph_(graph),
        program_(program),
        rank_(rank),
        findings_(findings),
        gathered_(program.buckets.size()),
        once_(program.norm && !program.post_validation) {
    for (std::size_t b = 0; b < program.buckets.size(); ++b) {
      const std::vector<int>& owners = program.buckets[b].owners;
      if (std::binary_search(owners.begin(), owners.end(), rank)) owned_.push_back(b);
    }
    for (const Instruction& at : program.ranks[static_cast<std::size_t>(rank)].instructions) {
      if (at.kind == InstructionKind::update_weights) ++gathered_[static_cast<std::size_t>(at.bucket)].listed_updates;
    }
  }

  void run(const std::vector<UnrolledInstruction>& list) {
    for (const UnrolledInstruction& at : list) {
      position_ = static_cast<std::size_t>(at.position);
      iteration_ = at.iteration;
      step(program_.ranks[static_cast<std::size_t>(rank_)].instructions[position_]);
    }
    const int norms = program_.training && program_.norm ? iterations_to_check(program_) : 0;
    if (norms_ != norms) {
      findings_.add(fmt::format("rank {} enters reduce_norm {} times instead of {}", rank_, norms_, norms));
    }
    for (std::size_t b = 0; b < program_.buckets.size(); ++b) finish(b);
  }

  const std::vector<std::size_t>& owned() const { return owned_; }
  /// Micro-batches; a rank that holds several of the bucket's stages gathers from each.
  std::size_t per_update(std::size_t bucket) const {
    const std::vector<std::int32_t>& stages = program_.buckets[bucket].stages;
    const auto held = std::count_if(stages.begin(), stages.end(), [&](std::int32_t stage) {
      const std::vector<int>& ranks = program_.stages[static_cast<std::size_t>(stage)].ranks;
      return std::find(ranks.begin(), ranks.end(), rank_) != ranks.end();
    });
    return gathered_[bucket].per_update / static_cast<std::size_t>(std::max<std::ptrdiff_t>(1, held));
  }

 private:
  void finish(std::size_t b) {
    const Gathered& bucket = gathered_[b];
    const bool owns = program_.training && std::find(owned_.begin(), owned_.end(), b) != owned_.end();
    if (once_ || !program_.training) {
      expect(b, "reduces", bucket.reductions, owns && program_.buckets[b].owners.size() > 1);
      expect(b, "updates", bucket.updates, owns);
    } else if (owns && (bucket.updates == 0 || bucket.since_update > 0)) {
      findings_.add(fmt::format("rank {} gathers gradients of bucket {} that it never applies", rank_, b));
    }
    if (bucket.in_parts) {
      findings_.add(fmt::format("rank {} updates its part of bucket {} and never gathers those of others", rank_, b));
    }
    if (owns && program_.buckets[b].owners.size() > 1 && bucket.reductions != bucket.updates) {
      findings_.add(fmt::format("rank {} reduces bucket {} {} times and updates it {} times", rank_, b,
                                bucket.reductions, bucket.updates));
    }
  }

  void expect(std::size_t bucket, std::string_view what, int times, bool once) {
    if (times == (once ? 1 : 0)) return;
    findings_.add(fmt::format("rank {} {} bucket {} {} times instead of {}", rank_, what, bucket, times, once ? 1 : 0));
  }

  void fault(std::string_view why) {
    findings_.add(fmt::format("{} (instruction {}): {}", describe(graph_, program_, rank_, position_), position_, why));
  }

  std::string words(std::size_t position) const {
    return fmt::format("{} (instruction {})", describe(graph_, program_, rank_, position), position);
  }

  void step(const Instruction& at) {
    switch (at.kind) {
      case InstructionKind::forward:
      case InstructionKind::backward_input:
      case InstructionKind::recompute:
        return computes(at, false);
      case InstructionKind::backward:
      case InstructionKind::backward_weight:
        if (at.kind == InstructionKind::backward && at.segment > 0) return goes_on(at);
        return computes(at, true);
      case InstructionKind::reduce_gradients:
        return reduce(at);
      case InstructionKind::reduce_norm:
        ++norms_;
        for (Gathered& bucket : gathered_) bucket.unvalidated = false;
        return;
      case InstructionKind::update_weights:
        return update(at);
      case InstructionKind::gather_weights:
        return gather(at);
      default:
        return;
    }
  }

  void computes(const Instruction& at, bool contributes) {
    for (const std::size_t b : owned_) {
      const std::vector<std::int32_t>& stages = program_.buckets[b].stages;
      if (!std::binary_search(stages.begin(), stages.end(), at.stage)) continue;
      if (at.kind == InstructionKind::backward_weight && !completes(at, b)) continue;
      Gathered& bucket = gathered_[b];
      // A list that flushes and updates a bucket once computes nothing of the iteration after that.
      const bool one = program_.overlap == 0 && bucket.listed_updates == 1;
      const bool over = once_ ? bucket.updates > 0 : one && bucket.updated_in == iteration_;
      if (over) fault(fmt::format("it comes after the update of bucket {}", b));
      if (bucket.in_parts) fault(fmt::format("it reads bucket {} before all parts are gathered", b));
      if (!contributes) continue;
      if (bucket.reduced) {
        fault(fmt::format("its gradients would be lost: {} comes before it", words(bucket.reduction)));
      }
      if (once_ && norms_ > 0) fault("its gradients come after the norm");
      if (bucket.unvalidated)
        fault("its gradients come before the updates with those of the iteration before are valid");
      ++bucket.since_update;
      bucket.last_contribution = position_;
      if (bucket.since_update > 1 && bucket.iteration != iteration_) {
        fault(fmt::format("bucket {} gathers gradients of two iterations", b));
      }
      bucket.iteration = iteration_;
    }
  }

  OpId completing(std::size_t bucket, std::int32_t stage) {
    const auto [entry, is_new] = completing_.try_emplace({bucket, stage}, -1);
    if (is_new) entry->second = completing_op(graph_, program_.buckets[bucket], program_.stages[millrace::at(stage)]);
    return entry->second;
  }

  // Of the segments of a micro-batch's weight gradients the one with the bucket's first operator is the contribution.
  bool completes(const Instruction& at, std::size_t bucket) {
    if (at.segment < 0) return true;
    const std::span<const OpId> ops = weight_ops(program_.stages[millrace::at(at.stage)], at.segment);
    return std::binary_search(ops.begin(), ops.end(), completing(bucket, at.stage));
  }

  // A later segment of a contribution.
  void goes_on(const Instruction& at) {
    for (const std::size_t b : owned_) {
      const std::vector<std::int32_t>& stages = program_.buckets[b].stages;
      if (std::binary_search(stages.begin(), stages.end(), at.stage)) gathered_[b].last_contribution = position_;
    }
  }

  void reduce(const Instruction& at) {
    Gathered& bucket = gathered_[static_cast<std::size_t>(at.bucket)];
    if (once_ && norms_ > 0) fault(fmt::format("bucket {} is reduced after the norm", at.bucket));
    if (once_ && at.bucket <= last_) {
      fault(fmt::format("bucket {} is reduced after bucket {}; all ranks keep one order", at.bucket, last_));
    }
    last_ = at.bucket;
    if (bucket.since_update == 0) fault("there is no gradient to reduce yet");
    if (bucket.reduced) fault(fmt::format("the same gradients are reduced before by {}", words(bucket.reduction)));
    check_attached(at, bucket);
    bucket.reduced = true;
    bucket.reduction = position_;
    ++bucket.reductions;
  }

  // Inside of the computation with the bucket's last contribution, not before that is made.
  void check_attached(const Instruction& at, const Gathered& bucket) {
    if (at.op < 0 || bucket.since_update == 0) return;
    if (!directly_after(bucket.last_contribution)) {
      return fault(fmt::format("it says where it may start inside of {}, but is not attached to it",
                               words(bucket.last_contribution)));
    }
    const std::vector<Instruction>& list = program_.ranks[static_cast<std::size_t>(rank_)].instructions;
    const std::int32_t stage = list[bucket.last_contribution].stage;
    const OpId last = completing(static_cast<std::size_t>(at.bucket), stage);
    if (at.op > last) {
      fault(fmt::format("it starts behind {}, but {} is still to add to the bucket", graph_.op(at.op).name,
                        graph_.op(last).name));
    }
  }

  // Only others that are attached stand between the computation and this one.
  bool directly_after(std::size_t contribution) const {
    const std::vector<Instruction>& list = program_.ranks[static_cast<std::size_t>(rank_)].instructions;
    for (std::size_t i = contribution + 1; i < position_; ++i) {
      if (!is_of_bucket(list[i].kind) || list[i].op < 0) return false;
    }
    return contribution < position_;
  }

  void gather(const Instruction& at) {
    Gathered& bucket = gathered_[static_cast<std::size_t>(at.bucket)];
    if (!is_sharded(program_, program_.buckets[static_cast<std::size_t>(at.bucket)])) {
      return fault("the bucket is not updated in parts");
    }
    if (!bucket.in_parts) fault("this rank's part is not updated yet");
    if (at.op >= 0 && !directly_after(bucket.last_contribution)) {
      fault(fmt::format("it says where it may start inside of {}, but is not attached to it",
                        words(bucket.last_contribution)));
    }
    bucket.in_parts = false;
  }

  void update(const Instruction& at) {
    const auto b = static_cast<std::size_t>(at.bucket);
    Gathered& bucket = gathered_[b];
    if (once_ && norms_ == 0) fault(fmt::format("bucket {} is updated before the norm is known", b));
    check_attached(at, bucket);
    bucket.unvalidated = program_.post_validation;
    bucket.in_parts = is_sharded(program_, program_.buckets[b]);
    bucket.updated_in = iteration_;
    if (bucket.since_update == 0) fault("there is no gradient to apply");
    if (program_.buckets[b].owners.size() > 1 && !bucket.reduced) fault("its gradients are not reduced");
    if (bucket.since_update > 0 && bucket.iteration != iteration_) fault("its gradients are of another iteration");
    if (bucket.updates == 0) bucket.per_update = bucket.since_update;
    if (bucket.since_update != bucket.per_update) {
      fault(fmt::format("it applies {} micro-batches, the update before {}", bucket.since_update, bucket.per_update));
    }
    bucket.since_update = 0;
    bucket.reduced = false;
    ++bucket.updates;
  }

  const Graph& graph_;
  const Program& program_;
  int rank_;
  Findings& findings_;
  std::vector<std::size_t> owned_;  // buckets
  std::vector<Gathered> gathered_;  // by bucket
  bool once_;                       // one iteration with its norm before its updates
  std::size_t position_ = 0;
  int iteration_ = 0;
  int norms_ = 0;
  std::int32_t last_ = -1;                                           // bucket reduced
  std::map<std::pair<std::size_t, std::int32_t>, OpId> completing_;  // by bucket and stage
};

}  // namespace

void check_reductions(const Graph& graph, const Program& program, Findings& findings) {
  check_owners(graph, program, findings);
  check_order_of_groups(graph, program, findings);
  const auto lists = unroll(program, iterations_to_check(program));
  std::map<int, std::tuple<int, std::size_t, std::size_t>> first;  // by pipeline: rank, bucket, micro-batches an update
  for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank) {
    ReductionCheck check(graph, program, rank, findings);
    check.run(lists[static_cast<std::size_t>(rank)]);
    if (program.norm) continue;
    // All buckets are updated in one rhythm.
    for (const std::size_t b : check.owned()) {
      const auto stage = static_cast<std::size_t>(program.buckets[b].stages.front());
      const auto [place, is_new] =
          first.try_emplace(program.stages[stage].ref.pipeline, std::tuple(rank, b, check.per_update(b)));
      const auto& [other_rank, other_bucket, count] = place->second;
      if (is_new || count == check.per_update(b)) continue;
      findings.add(fmt::format("rank {} updates bucket {} after {} micro-batches, rank {} bucket {} after {}", rank, b,
                               check.per_update(b), other_rank, other_bucket, count));
    }
  }
}

}  // namespace millrace::verification
