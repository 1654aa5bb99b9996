// Counts what one thread allocates, by whatever way, to show that kernels allocate nothing while they train.
#pragma once

#include <cstdint>

namespace millrace::testing {

/// Calls of malloc and its kin by this thread so far, operator new and libraries included, but for what oneDNN does
/// inside its two calls that compute: it copies lists of arguments and takes room for packed matrices there. Creating a
/// primitive counts.
std::int64_t allocations_of_this_thread();

}  // namespace millrace::testing
