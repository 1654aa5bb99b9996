// Steps through the computations of each rank in the order of execution.
#include "sim/memory_profile.h"

#include <algorithm>
#include <map>

#include "program/kept_versions.h"
#include "program/weight_segments.h"

namespace millrace::sim {
namespace {

bool computes(InstructionKind kind) {
  return kind == InstructionKind::forward || kind == InstructionKind::backward ||
         kind == InstructionKind::backward_input || kind == InstructionKind::backward_weight ||
         kind == InstructionKind::recompute;
}

class RankProfile {
 public:
  RankProfile(const Program& program, const FootprintOf& footprint, int rank) : program_(program) {
    for (std::size_t s = 0; s < program.stages.size(); ++s) {
      const std::vector<int>& ranks = program.stages[s].ranks;
      if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) continue;
      const auto stage = static_cast<std::int32_t>(s);
      const plan::StageFootprint one = footprints_[stage] = footprint(stage, rank);
      now_.weights += one.weights;
      now_.gradients += one.gradients;
      now_.optimizer += one.optimizer;
      now_.buffers += one.messages;
    }
    sample(Seconds(0));
  }

  void add(const TimelineRow& row) {
    const InstructionKind kind = row.instruction.kind;
    if (!computes(kind)) return keep_versions(row);
    const plan::StageFootprint& one = footprints_[row.instruction.stage];
    if (kind == InstructionKind::forward && row.instruction.segment <= 0) now_.activations += one.per_slot;
    now_.workspace = one.workspace;
    sample(row.start);
    now_.workspace = Bytes(0);
    if (ends_micro_batch(program_, row.instruction)) now_.activations -= one.per_slot;
    sample(row.end);
  }

  std::vector<MemorySample> take() { return std::move(samples_); }

 private:
  // An update leaves the weights that a stash holds where they were copied to.
  void keep_versions(const TimelineRow& row) {
    const Instruction& at = row.instruction;
    if (at.kind == InstructionKind::stash_weights) versions_[at.stage].stash(row.iteration, at.micro_batch);
    if (at.kind == InstructionKind::drop_stash) versions_[at.stage].drop(row.iteration, at.micro_batch);
    if (at.kind == InstructionKind::update_weights) {
      for (const std::int32_t stage : program_.buckets[static_cast<std::size_t>(at.bucket)].stages) {
        const auto versions = versions_.find(stage);
        if (versions != versions_.end()) versions->second.update(at.bucket);
      }
    }
    Bytes weights;
    for (const auto& [stage, one] : footprints_) {
      const auto versions = versions_.find(stage);
      weights += (1 + (versions == versions_.end() ? 0 : versions->second.copies())) * one.weights;
    }
    if (weights == now_.weights) return;
    now_.weights = weights;
    sample(row.start);
  }

  void sample(Seconds time) { samples_.push_back({time, now_}); }

  const Program& program_;
  std::map<std::int32_t, KeptVersions> versions_;  // by stage
  std::map<std::int32_t, plan::StageFootprint> footprints_;
  plan::StageMemory now_{};
  std::vector<MemorySample> samples_;
};

}  // namespace

std::vector<std::vector<MemorySample>> memory_profile(const Program& program, const Timeline& timeline,
                                                      const FootprintOf& footprint) {
  std::vector<RankProfile> ranks;
  for (std::size_t r = 0; r < program.ranks.size(); ++r) ranks.emplace_back(program, footprint, static_cast<int>(r));
  for (const TimelineRow& row : timeline.rows) ranks[static_cast<std::size_t>(row.rank)].add(row);
  std::vector<std::vector<MemorySample>> out;
  for (RankProfile& rank : ranks) out.push_back(rank.take());
  return out;
}

std::vector<MemorySample> peaks(const std::vector<std::vector<MemorySample>>& profile) {
  std::vector<MemorySample> out;
  for (const std::vector<MemorySample>& samples : profile) {
    out.push_back(*std::max_element(samples.begin(), samples.end(), [](const MemorySample& a, const MemorySample& b) {
      return a.memory.total() < b.memory.total();
    }));
  }
  return out;
}

}  // namespace millrace::sim
