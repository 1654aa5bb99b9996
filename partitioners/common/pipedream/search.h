// The objective pipedream: the best plan on one level of equal machines or on two.
#pragma once

#include <chrono>
#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"

namespace millrace::partitioners {

struct PipedreamPlan {
  std::vector<std::vector<OpId>> stages;  ///< operators, ascending
  std::vector<std::vector<int>> devices;  ///< of each stage: in every node of its outer stage the inner replicas
  double value = 0;                       ///< slowest stage, seconds; infinite: nothing fits
  double bound = 0;                       ///< no plan of convex stages that uses all machines is below
  bool late = false;                      ///< the deadline passed
};

/// \throws InvalidInput  as plan::judge_pipedream.
PipedreamPlan pipedream_search(const plan::Problem& problem, std::chrono::steady_clock::time_point deadline);

}  // namespace millrace::partitioners
