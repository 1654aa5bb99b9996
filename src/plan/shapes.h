// Numbers of pipelines and stages that a problem's devices, batch and graph allow; the others are refused by reason.
#pragma once

#include <vector>

#include "plan/plan_set.h"
#include "plan/problem.h"

namespace millrace::plan {

struct Shape {
  int pipelines = 1;
  int stages = 1;
  int devices = 1;  ///< of a pipeline
};

/// Numbers of pipelines with the devices of each, by ascending number; `stages` is 0 where the problem does not fix
/// it. Those that cannot be go into `plans`.
std::vector<Shape> allowed_pipelines(const Problem& problem, PlanSet& plans);

/// The same with every number of stages of Problem::stage_counts().
std::vector<Shape> allowed_shapes(const Problem& problem, PlanSet& plans);

}  // namespace millrace::plan
