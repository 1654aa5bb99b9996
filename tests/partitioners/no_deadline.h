// For searches that run until they are done.
#pragma once

#include <chrono>

namespace millrace::partitioners {

inline constexpr auto kNoDeadline = std::chrono::steady_clock::time_point::max();

}  // namespace millrace::partitioners
