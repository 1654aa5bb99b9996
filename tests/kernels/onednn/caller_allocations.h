// Counts what the program itself allocates through operator new, leaving out what oneDNN allocates inside.
#pragma once

#include <cstdint>

namespace millrace::kernels::testing {

/// Requests so far whose immediate caller is not oneDNN's library: executing a primitive makes some there.
std::int64_t own_allocations();

}  // namespace millrace::kernels::testing
