// The smallest memory in which a plan fits, found by asking again under other limits.
#pragma once

#include "planner/search.h"

namespace millrace::planner {

/// Lowers what is known to be enough until one byte less is too little. Partitioners that look for cuts that fit are
/// asked again; the plans of the others depend on the limit where something is run again to fit, or where the schedule
/// deals or orders by it. Where asking takes long it is left, after a second
/// in all: then `minimal` is false.
/// \param known  a limit under which a plan fits.
/// \param one_search  how long it takes to ask once.
LeastMemory least_memory(const Request& request, const LeastMemory& known, Seconds one_search,
                         const MakeEvaluator& make_evaluator);

/// The smallest limit of a device; none: no device has one.
std::optional<Bytes> least_limit(const plan::Problem& problem);

/// The devices with all the memory that they may want.
cluster::Cluster without_limits(const cluster::Cluster& from);

}  // namespace millrace::planner
