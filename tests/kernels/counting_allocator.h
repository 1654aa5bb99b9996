// Counts what the program allocates through operator new, to show that training steps allocate nothing.
#pragma once

#include <cstdint>

namespace millrace::kernels::testing {

struct Allocations {
  std::int64_t count = 0;
  std::int64_t aligned_bytes = 0;  ///< of the requests with an alignment of their own: the blocks of executables
};

/// All so far, on all threads. A program that calls this has its operator new replaced.
Allocations allocations();

}  // namespace millrace::kernels::testing
