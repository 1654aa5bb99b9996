// Lower bounds on the time of an iteration, over all plans of a problem (plan/bounds.h says which).
#pragma once

#include "plan/bounds.h"

namespace millrace::plan {

/// Bound on the iteration time, s.
Bound iteration_bound(const Problem& problem, Judge judge);

/// Bound on micro-batches × the slowest stage, s: no reduction, no fill.
Bound steady_bound(const Problem& problem);

}  // namespace millrace::plan
