// What the tests of makespans read from a timeline.
#pragma once

#include <vector>

#include "sim/simulate.h"

namespace millrace::sim {

/// By rank: from the start of its first computation of a micro-batch to the end of its last.
std::vector<double> spans(const Simulation& run);

/// By iteration: the end of its last instruction on any rank.
std::vector<double> ends_of_iterations(const Simulation& run);

}  // namespace millrace::sim
