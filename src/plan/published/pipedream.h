// The formula of the PipeDream optimizer (Narayanan et al., SOSP 2019, section 3.1; its code adds the crossing terms,
// here with an activation compression ratio of 1).
#pragma once

#include <cmath>

#include "plan/published/machine.h"

namespace millrace::plan {

/// Seconds of a stage of `seconds` on m machines of a level: shared compute and the reduction of its gradients, which
/// on an outer level the machines within each machine share.
inline double pipedream_stage(double seconds, double parameter_bytes, int m, const Level& level) {
  const double reduction = 4.0 * (m - 1) * parameter_bytes / (level.bytes_per_second * m) / level.within;
  return (seconds + reduction) / m;
}

/// Seconds of the activations that cross a border of the stage on m machines, and of their gradients.
inline double pipedream_crossing(double bytes, int m, const Level& level) {
  return 2 * bytes / (level.bytes_per_second * m);
}

/// Bytes that a stage on m machines keeps when `behind` machines of its level come after it.
inline double pipedream_stash(double activation_and_parameter_bytes, int m, int behind) {
  return std::ceil(static_cast<double>(behind) / m) * activation_and_parameter_bytes;
}

}  // namespace millrace::plan
