// Which gradients are reduced together where stages are split: those of a part over the devices that hold it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "plan/stage_times.h"

namespace millrace::plan {

/// One entry for each set of two or more owners, by devices; times are not filled in. A part of a parameter is owned by
/// the devices of that place in all replicas, a whole one by all devices of its stages.
/// \param parts  by flat stage; null where a replica has one device.
std::vector<Reduction> part_reductions(const Plan& plan, std::span<const std::shared_ptr<const StageParts>> parts,
                                       const Graph& graph, std::int64_t real_bytes);

}  // namespace millrace::plan
