// What the operating system says of this process's memory.
#pragma once

#include <cstdint>

namespace millrace::runtime {

/// Highest resident set so far (VmHWM), in bytes; 0 where the system does not tell.
std::int64_t peak_resident_bytes();

/// Gives pages that lie free in the heap back to the system.
void release_free_memory();

}  // namespace millrace::runtime
