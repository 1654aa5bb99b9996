// Copies of a pipeline on a grid of tensor-parallel ranks and replicas, each copy's ranks on their own.
#pragma once

#include <cstdint>
#include <span>

#include "sim/job.h"

namespace millrace::sim {

/// Over which copies a group of the pipeline reaches.
enum class Reach : std::uint8_t {
  copy,    ///< the members of one copy
  tensor,  ///< the tensor-parallel ranks that belong together, of every member
  data,    ///< the replicas, of every member
  all      ///< every copy of every member
};

/// `pipeline` has a rank for each device of one pipeline and `reach` says for each of its groups how far it goes. The
/// result has tensor · data copies of each rank: rank (replica · devices + device) · tensor + shard. Copies share their
/// programs. Folding it gives the pipeline back, each rank standing for tensor · data. Ports are left out.
/// \throws InvalidInput  no copies, or a reach missing.
Job grid(const Job& pipeline, int tensor, int data, std::span<const Reach> reach);

}  // namespace millrace::sim
