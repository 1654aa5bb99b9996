// Pipelines of a large model's size for the tests of folding and speed.
#pragma once

#include <vector>

#include "sim/grid.h"
#include "sim/job.h"

namespace millrace::sim::test {

/// 1F1B on `stages` ranks; each pass is cut into pieces by `collectives` collectives of the tensor group. Groups of
/// each rank: tensor, data, all.
struct PipelineSize {
  int stages = 4;
  int micro_batches = 8;
  int collectives = 2;
  double forward = 1, backward = 2;
  double collective = 0.125, hop = 0.25, reduce = 3, norm = 0.0625, update = 0.5;
};

struct Pipeline {
  Job job;
  std::vector<Reach> reach;
};

Pipeline pipeline(const PipelineSize& size);

}  // namespace millrace::sim::test
