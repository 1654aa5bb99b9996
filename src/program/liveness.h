// How many micro-batches a rank keeps between their forward and the end of their backward (METHODS 3).
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.h"

namespace millrace {

/// The most micro-batches alive at once on each rank, found by stepping through its program: a forward adds one, a
/// backward (backward_weight where the backward is split) frees it. In evaluation each forward frees its own.
std::vector<int> peak_live_micro_batches(const Program& program);

/// The same for one stage of one rank.
int peak_live_micro_batches(const RankProgram& rank, std::int32_t stage, bool training);

}  // namespace millrace
