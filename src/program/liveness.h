// How many micro-batches a rank keeps between their forward and the end of their backward (METHODS 3).
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.h"

namespace millrace {

/// The most micro-batches alive at once on each rank, found by stepping through its program: a forward adds one, a
/// backward (backward_weight where the backward is split) frees it. In evaluation each forward frees its own. A
/// micro-batch counts once for each stage of the rank (stage -1), or for one stage alone.
std::vector<int> peak_live_micro_batches(const Program& program, std::int32_t stage = -1);

}  // namespace millrace
