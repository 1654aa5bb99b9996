// Memory by kind over time, from the planner's memory model and a timeline.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plan/memory.h"
#include "program/program.h"
#include "program/timeline.h"

namespace millrace::sim {

struct MemorySample {
  Seconds time{};
  plan::StageMemory memory{};  ///< from then on
};

/// What a stage needs on one of its ranks.
using FootprintOf = std::function<plan::StageFootprint(std::int32_t stage, int rank)>;

/// By rank: a sample at 0, then at each change. Weights, gradients, optimizer state and message buffers always stand; a
/// forward adds a micro-batch's kept tensors, its backward (backward_weight where it is split) frees them; a
/// computation holds its workspace while it runs; each version of the weights that stashes hold beside the newest
/// counts as the weights do. METHODS 3.
std::vector<std::vector<MemorySample>> memory_profile(const Program& program, const Timeline& timeline,
                                                      const FootprintOf& footprint);

/// The sample of each rank at which the most is in use.
std::vector<MemorySample> peaks(const std::vector<std::vector<MemorySample>>& profile);

}  // namespace millrace::sim
