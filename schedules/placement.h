// Puts the stages of a pipeline on devices as a schedule wants them.
#pragma once

#include <vector>

#include "plan/plan.h"
#include "schedules/registry.h"

namespace millrace::schedules {

/// The devices of one place of a pipeline, with the shares of its replicas.
struct Seat {
  std::vector<int> devices;
  std::vector<double> shares;
  int tensor_parallel = 1;
};

/// `pipeline` with its stages (whatever devices they name) on `seats` by the rule of `placement`. For both_ways there
/// are two pipelines, each with half of the share and of the micro-batches.
/// \throws InvalidInput  a number of stages that the placement does not have for so many seats, or an odd number of
///                       micro-batches for both_ways.
std::vector<Pipeline> place(const Pipeline& pipeline, const std::vector<Seat>& seats, Placement placement);

}  // namespace millrace::schedules
