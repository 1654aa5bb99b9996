// The start value of a minimum, and the unit that messages give memory in.
#pragma once

#include <limits>

namespace millrace {

/// The time of what does not happen, and the cost of what is not possible.
inline constexpr double kNever = std::numeric_limits<double>::infinity();

inline constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;  ///< bytes

}  // namespace millrace
