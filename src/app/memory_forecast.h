// What the ranks of a plan will hold on this machine: the same count that a run refuses by.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "app/emulation.h"
#include "app/session.h"
#include "planner/program_memory.h"

namespace millrace::app {

/// For graphs that run here: on the job's own ranks (cluster: local), whose kernels are known, and on emulated
/// clusters. What other clusters run on is not at hand.
class MemoryForecast {
 public:
  /// `session` outlives it.
  explicit MemoryForecast(const Session& session);

  /// Nothing where the kernels are not known, or the runtime refuses the plan.
  std::optional<planner::ProgramMemory> of(const Plan& plan) const;

 private:
  const Session& session_;
  bool known_ = false;
  std::unique_ptr<EmulatedSizes> emulated_;
  std::int64_t train_samples_ = 0;
  std::int64_t test_samples_ = 0;
};

}  // namespace millrace::app
