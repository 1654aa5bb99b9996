// Programs of plans, simulated for a judge: those that were met before are not simulated again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "plan/problem.h"
#include "planner/program_memory.h"
#include "program/lowering.h"
#include "sim/costs.h"
#include "sim/simulate.h"

namespace millrace::planner {

/// A program's times and memory, for every device. The run has no timeline.
struct TrialResult {
  sim::Simulation run;
  ProgramMemory memory;
  bool reduces = false;  ///< gradients, over several ranks
};

/// A plan with what its program did.
struct Trial {
  Plan plan;
  std::uint64_t program = 0;  ///< equal for programs that are
  std::shared_ptr<const TrialResult> result;

  double seconds() const { return result->run.iteration_time.value(); }
};

/// What is known of programs; several threads may share it.
class KnownPrograms {
 public:
  std::shared_ptr<const TrialResult> find(std::uint64_t program) const;
  void keep(std::uint64_t program, std::shared_ptr<const TrialResult> result);

 private:
  mutable std::mutex guard_;
  std::map<std::uint64_t, std::shared_ptr<const TrialResult>> results_;
};

/// Simulates plans on one thread. Costs that plans have in common are asked for once.
class ProgramTrials {
 public:
  /// All must outlive it. Noise is left to the caller.
  ProgramTrials(const plan::Problem& problem, const sim::Options& options, Hiding hiding, KnownPrograms& known);

  /// Equal parts of the plan once. \throws InvalidInput  what its schedule refuses.
  Trial of(Plan plan);

 private:
  const plan::Problem& problem_;
  const sim::Options& options_;
  Hiding hiding_;
  KnownPrograms& known_;
  sim::SimCosts costs_;
  plan::AnalyticBytes counted_;
  KnownFootprints bytes_;
};

}  // namespace millrace::planner
