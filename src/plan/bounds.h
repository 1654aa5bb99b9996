// Proven lower bounds on what any plan of a problem can reach (METHODS 6, last sentences of `exact`).
#pragma once

#include <optional>

#include "plan/problem.h"

namespace millrace::plan {

/// max(total work / total speed; the longest operator on its fastest device where the problem leaves no device for a
/// second replica), for objectives throughput and bottleneck; none for the others (communication: 0 bytes on one
/// device only, so nothing useful is known).
/// Rests on times per row that do not grow with rows (cost::CostModel).
std::optional<double> lower_bound(const Problem& problem);

}  // namespace millrace::plan
