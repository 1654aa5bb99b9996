// The objective time_per_sample: the best stages, tensor- and data-parallel degrees and recomputation by Piper's rules.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"

namespace millrace::partitioners {

struct PiperStage {
  std::vector<OpId> ops;  ///< ascending
  int tensor_parallel = 1;
  int replicas = 1;
  std::vector<OpId> recompute;
};

struct PiperPlan {
  std::vector<PiperStage> stages;  ///< none: nothing fits
  double value = 0;                ///< seconds per sample
  double bound = 0;                ///< proven: no plan of convex stages is below
  bool proven = false;             ///< value and bound are the optimum
  bool late = false;               ///< the deadline passed
};

/// \throws InvalidInput  as plan::judge_time_per_sample.
PiperPlan piper_search(const plan::Problem& problem, std::chrono::steady_clock::time_point deadline);

}  // namespace millrace::partitioners
