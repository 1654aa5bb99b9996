// A pipeline of a large model's shape, whose simulation is timed and tested.
#pragma once

#include <vector>

#include "sim/grid.h"
#include "sim/job.h"

namespace millrace::sim {

/// 1F1B on `stages` ranks; each pass is cut into pieces by `collectives` collectives of the tensor group. Groups of
/// each rank: tensor, data, all.
struct SampleSize {
  int stages = 4;
  int micro_batches = 8;
  int collectives = 2;  ///< of each pass
  double forward = 1, backward = 2;
  double collective = 0.125, hop = 0.25, reduce = 3, norm = 0.0625, update = 0.5;
};

struct SampleJob {
  Job job;
  std::vector<Reach> reach;  ///< of its groups, for grid()
};

SampleJob sample_job(const SampleSize& size);

}  // namespace millrace::sim
