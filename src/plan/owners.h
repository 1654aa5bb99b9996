// Which parameters have which owners, hence which gradients are reduced together and over which devices.
#pragma once

#include <vector>

#include "plan/plan_cuts.h"
#include "plan/stage_times.h"

namespace millrace::plan {

/// One entry for each set of two or more owners, by devices; times are not filled in. O(operators) for each different
/// cut, and O(owners) for each set.
std::vector<Reduction> shared_parameters(const Plan& plan, const PlanCuts& cuts, const Graph& graph,
                                         std::int64_t real_bytes);

}  // namespace millrace::plan
