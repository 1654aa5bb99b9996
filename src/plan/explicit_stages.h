// The plan that a user's own list of stages means (`stages: [[conv1, "layer1.*"], …]` in an experiment).
#pragma once

#include <string>
#include <vector>

#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/problem.h"

namespace millrace::plan {

/// Takes the stages as they are, in every number of pipelines that the problem allows; the devices of a pipeline are
/// dealt to the stages as evenly as possible, the first stages get one more. Fills in each report's `partitioner`
/// ("explicit"). Shapes that the devices or the batch do not allow are refused in the set.
/// \throws InvalidInput  naming all items that match nothing or twice, operators in no stage, empty stages, and stages
///                       that are not convex or not in order.
PlanSet explicit_stages(const Problem& problem, const std::vector<std::vector<std::string>>& stages,
                        Evaluator& evaluator);

}  // namespace millrace::plan
