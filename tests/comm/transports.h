// The transports between real processes that keep one contract, for tests of it.
#pragma once

#include <memory>
#include <string>

#include <mpi.h>

#include "comm/node/node_transport.h"

namespace millrace::testing {

enum class Way { mpi, memory, both };  ///< both: two ranks a node

inline std::string name(Way way) { return way == Way::mpi ? "mpi" : way == Way::memory ? "memory" : "both"; }

inline comm::NodeTransportOptions options_of(Way way, comm::MpiTransportOptions mpi = {}) {
  return {.mpi = mpi, .shares_memory = way != Way::mpi, .ranks_per_node = way == Way::both ? 2 : 0};
}

}  // namespace millrace::testing
