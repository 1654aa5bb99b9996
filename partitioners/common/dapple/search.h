// The objective dapple: the plan of least latency, filling and gradient reduction included.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"

namespace millrace::partitioners {

struct DapplePlan {
  int pipelines = 1;
  std::int64_t micro_batches = 1;
  std::vector<std::vector<OpId>> stages;               ///< operators, ascending; none: no plan
  std::vector<std::vector<std::vector<int>>> devices;  ///< [pipeline][stage]
  double value = 0;                                    ///< latency, seconds
  double bound = 0;                                    ///< no plan that uses all devices is below
  bool late = false;                                   ///< the deadline passed
};

/// Plans with equal pipelines that use all devices. Numbers of pipelines that do not divide the batch are left out.
/// \throws InvalidInput  as plan::judge_dapple.
DapplePlan dapple_search(const plan::Problem& problem, std::chrono::steady_clock::time_point deadline);

}  // namespace millrace::partitioners
