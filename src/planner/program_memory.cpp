// Counts live micro-batches of every stage on every rank.
#include "planner/program_memory.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "program/kept_versions.h"
#include "program/unroll.h"
#include "program/weight_segments.h"

namespace millrace::planner {
namespace {

// A stage on one of its ranks.
struct HeldByStage {
  const plan::StageFootprint* footprint = nullptr;
  std::int64_t live = 0;
  KeptVersions versions{};
  int copies = 0;  ///< of the weights, at most
};

class Stepping {
 public:
  Stepping(const Program& program, const plan::StageBytes& bytes) : program_(program) {
    memory_.ranks.resize(program.ranks.size());
    memory_.stages.resize(program.stages.size());
    memory_.live_micro_batches.assign(program.stages.size(), 0);
    held_.resize(program.ranks.size());
    for (std::size_t s = 0; s < program.stages.size(); ++s) hold(s, bytes);
  }

  ProgramMemory run() {
    // Filled, and then once through: more iterations meet no other state.
    const bool goes_on = program_.overlap > 0 || keeps_versions();
    const auto lists = unroll(program_, goes_on ? 2 * program_.overlap + 2 : 1);
    for (std::size_t rank = 0; rank < lists.size(); ++rank) {
      Bytes now;
      for (const UnrolledInstruction& step : lists[rank]) {
        const Instruction& at = program_.ranks[rank].instructions[static_cast<std::size_t>(step.position)];
        keep_versions(rank, at, step.iteration);
        act(rank, at, now);
      }
    }
    for (std::size_t s = 0; s < program_.stages.size(); ++s) {
      for (const int rank : program_.stages[s].ranks) {
        const HeldByStage& held = held_[static_cast<std::size_t>(rank)].at(static_cast<std::int32_t>(s));
        plan::StageMemory here = plan::stage_memory(*held.footprint, memory_.live_micro_batches[s]);
        here.weights += held.copies * held.footprint->weights;
        if (here.total() > memory_.stages[s].total()) memory_.stages[s] = here;
      }
    }
    return std::move(memory_);
  }

 private:
  void hold(std::size_t s, const plan::StageBytes& bytes) {
    const ProgramStage& stage = program_.stages[s];
    for (std::size_t i = 0; i < stage.ranks.size(); ++i) {
      std::int64_t rows = 0;
      for (const std::vector<RowInterval>& intervals : stage.rows) {
        rows = std::max(rows, intervals[stage.replica_of(i)].size());
      }
      // Parts of the optimizer's state differ by one element: the first replica with so many rows has a longest one.
      const std::size_t shard = stage.parts == nullptr ? 0 : i % static_cast<std::size_t>(stage.tensor_parallel);
      const auto [entry, is_new] = footprints_.try_emplace({s, shard, rows});
      if (is_new) {
        entry->second = footprint_on(stage.parts == nullptr
                                         ? bytes.footprint(stage.ops, rows, stage.recompute)
                                         : bytes.part_footprint(stage.parts, shard, stage.ops, rows, stage.recompute),
                                     stage, i);
      }
      const plan::StageFootprint& one = entry->second;
      const auto rank = static_cast<std::size_t>(stage.ranks[i]);
      held_[rank][static_cast<std::int32_t>(s)] = {.footprint = &one};
      plan::StageMemory& all = memory_.ranks[rank];
      all.weights += one.weights;
      all.gradients += one.gradients;
      all.optimizer += one.optimizer;
      all.buffers += one.messages;
      all.workspace = std::max(all.workspace, one.workspace);
    }
  }

  bool keeps_versions() const {
    return std::any_of(program_.ranks.begin(), program_.ranks.end(), [](const RankProgram& rank) {
      return std::any_of(rank.instructions.begin(), rank.instructions.end(),
                         [](const Instruction& at) { return at.kind == InstructionKind::stash_weights; });
    });
  }

  // Stashes keep the weights that updates overwrite (METHODS 2).
  void keep_versions(std::size_t rank, const Instruction& at, std::int32_t iteration) {
    if (at.kind == InstructionKind::stash_weights) held_[rank].at(at.stage).versions.stash(iteration, at.micro_batch);
    if (at.kind == InstructionKind::drop_stash) held_[rank].at(at.stage).versions.drop(iteration, at.micro_batch);
    if (at.kind != InstructionKind::update_weights) return;
    Bytes weights;
    for (auto& [stage, held] : held_[rank]) {
      const auto& stages = program_.buckets[static_cast<std::size_t>(at.bucket)].stages;
      if (std::binary_search(stages.begin(), stages.end(), stage)) held.versions.update(at.bucket);
      held.copies = std::max(held.copies, held.versions.copies());
      weights += (1 + held.versions.copies()) * held.footprint->weights;
    }
    memory_.ranks[rank].weights = std::max(memory_.ranks[rank].weights, weights);
  }

  void act(std::size_t rank, const Instruction& at, Bytes& now) {
    const bool adds = at.kind == InstructionKind::forward && at.segment <= 0;
    const bool frees = ends_micro_batch(program_, at);
    if (!adds && !frees) return;
    HeldByStage& stage = held_[rank].at(at.stage);
    stage.live += adds ? 1 : -1;
    now += (adds ? 1 : -1) * stage.footprint->per_slot;
    std::int64_t& most = memory_.live_micro_batches[static_cast<std::size_t>(at.stage)];
    most = std::max(most, stage.live);
    memory_.ranks[rank].activations = std::max(memory_.ranks[rank].activations, now);
  }

  const Program& program_;
  // By stage, shard of a replica and rows.
  std::map<std::tuple<std::size_t, std::size_t, std::int64_t>, plan::StageFootprint> footprints_;
  std::vector<std::map<std::int32_t, HeldByStage>> held_;  // by rank, then stage
  ProgramMemory memory_;
};

}  // namespace

plan::StageFootprint KnownFootprints::footprint(std::span<const OpId> ops, std::int64_t rows,
                                                std::span<const OpId> recompute) const {
  const auto [entry, is_new] = known_.try_emplace({hash64(std::as_bytes(ops)), hash64(std::as_bytes(recompute)), rows});
  if (is_new) entry->second = from_->footprint(ops, rows, recompute);
  return entry->second;
}

plan::StageFootprint KnownFootprints::part_footprint(const std::shared_ptr<const StageParts>& parts, std::size_t shard,
                                                     std::span<const OpId> ops, std::int64_t rows,
                                                     std::span<const OpId> recompute) const {
  const auto [entry, is_new] = known_parts_.try_emplace({parts, shard, hash64(std::as_bytes(recompute)), rows});
  if (is_new) entry->second = from_->part_footprint(parts, shard, ops, rows, recompute);
  return entry->second;
}

plan::StageFootprint footprint_on(plan::StageFootprint alone, const ProgramStage& stage, std::size_t index) {
  const auto part = [](Bytes all, double share) {
    return Bytes(static_cast<std::int64_t>(std::ceil(static_cast<double>(all.value()) * share)));
  };
  alone.gradients = part(alone.gradients, stage.gradient_share);
  if (!stage.optimizer_shares.empty()) alone.optimizer = part(alone.optimizer, stage.optimizer_shares[index]);
  return alone;
}

ProgramMemory program_memory(const Program& program, const plan::StageBytes& bytes) {
  return Stepping(program, bytes).run();
}

std::int64_t ProgramMemory::peak() const {
  std::int64_t most = 0;
  for (const plan::StageMemory& rank : ranks) most = std::max(most, rank.total().value());
  return most;
}

void take_memory(const ProgramMemory& memory, plan::PlanReport& report) {
  std::int64_t sum = 0;
  for (const plan::StageMemory& rank : memory.ranks) sum += rank.total().value();
  report.peak_memory_bytes = memory.peak();
  report.mean_memory_bytes = sum / static_cast<std::int64_t>(memory.ranks.size());
  for (std::size_t s = 0; s < report.stages.size(); ++s) {
    plan::StageReport& row = report.stages[s];
    row.live_micro_batches = memory.live_micro_batches[s];
    row.memory = memory.stages[s];
    row.memory_bytes = row.memory.total().value();
  }
}

}  // namespace millrace::planner
