// Folding: ranks that behave alike become one.
#pragma once

#include <span>

#include "sim/job.h"
#include "sim/noise.h"

namespace millrace::sim {

/// The same job with equal ranks as one each. Ranks are equal when they have equal programs, slowness and links, and
/// meet equal ranks in every slot: the coarsest such classes, found by refinement. Ranks in `apart` stay alone, such as
/// those that have noise. Without noise both jobs take the same time.
/// \param class_of  when not null: by rank of `job`, its rank in the result.
/// \pre check(job).
Job fold(const Job& job, std::span<const std::int32_t> apart = {}, std::vector<std::int32_t>* class_of = nullptr);

/// Multiplies the slowness of the named ranks. \throws InvalidInput  a rank that does not exist.
void slow_down(Job& job, std::span<const Straggler> stragglers);

}  // namespace millrace::sim
