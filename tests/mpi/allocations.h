// Counts what the program allocates, by whatever way, to show that it allocates nothing while it trains.
#pragma once

#include <cstdint>

namespace millrace::testing {

/// Calls of malloc and its kin by all threads so far, operator new and libraries included, but for what oneDNN and MPI
/// do inside of the calls that compute and communicate: oneDNN copies lists of arguments and takes room for packed
/// matrices there. Creating a primitive counts.
std::int64_t allocations_of_all_threads();

}  // namespace millrace::testing
