// The smallest memory in which a plan fits, found by asking again under other limits.
#pragma once

#include "planner/search.h"

namespace millrace::planner {

/// Lowers what is known to be enough until one byte less is too little. Partitioners that look for cuts that fit are
/// asked again; the plans of the others do not depend on the limit. Stops after a second: then `minimal` is false.
/// \param known  a limit under which a plan fits.
LeastMemory least_memory(const Request& request, const LeastMemory& known, const MakeEvaluator& make_evaluator);

}  // namespace millrace::planner
