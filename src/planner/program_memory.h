// What the ranks of a program hold, by stepping through their lists: the memory of a plan whose order is known.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "plan/memory.h"
#include "plan/report.h"
#include "program/program.h"

namespace millrace::planner {

/// Remembers footprints: plans of a search have many stages in common.
class KnownFootprints : public plan::StageBytes {
 public:
  /// `from` must outlive it.
  explicit KnownFootprints(const plan::StageBytes& from) : from_(&from) {}
  plan::StageFootprint footprint(std::span<const OpId> ops, std::int64_t rows,
                                 std::span<const OpId> recompute = {}) const override;
  plan::StageFootprint part_footprint(const std::shared_ptr<const StageParts>& parts, std::size_t shard,
                                      std::span<const OpId> ops, std::int64_t rows,
                                      std::span<const OpId> recompute = {}) const override;

 private:
  const plan::StageBytes* from_;
  mutable std::map<std::tuple<std::uint64_t, std::uint64_t, std::int64_t>, plan::StageFootprint> known_;  // by hashes
  using Part = std::tuple<std::shared_ptr<const StageParts>, std::size_t, std::uint64_t, std::int64_t>;
  mutable std::map<Part, plan::StageFootprint> known_parts_;  // by parts, shard, hash of what is recomputed, rows
};

/// Of a stage on the rank with `index` in it, less the gradients that lie in each other's place and the optimizer state
/// that others keep. \param alone  what the stage takes by itself
plan::StageFootprint footprint_on(plan::StageFootprint alone, const ProgramStage& stage, std::size_t index);

struct ProgramMemory {
  std::int64_t peak() const;  ///< of the fullest rank, in bytes

  std::vector<plan::StageMemory> ranks;          ///< activations at their peak, the largest workspace
  std::vector<plan::StageMemory> stages;         ///< on the fullest replica of each, at its own peak
  std::vector<std::int64_t> live_micro_batches;  ///< most of each stage, on any of its ranks
};

/// Puts it in place of what closed forms say. Rows of the report are the program's stages.
void take_memory(const ProgramMemory& memory, plan::PlanReport& report);

/// A forward adds what a micro-batch keeps, the end of its backward frees it (METHODS 3).
ProgramMemory program_memory(const Program& program, const plan::StageBytes& bytes);

}  // namespace millrace::planner
