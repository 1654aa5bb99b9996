// What the baselines that stand on graph partitioning libraries share: shapes, the check and repair of parts, plans.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "partitioners/common/library/part_graph.h"
#include "partitioners/common/repair.h"
#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/problem.h"

namespace millrace::partitioners::library {

/// What a library says: a part for each vertex, or why it has none.
struct Answer {
  Parts parts{};
  std::string why_not{};
};

/// One way of asking a library for `parts` parts of about equal weight. \pre 2 ≤ parts ≤ vertices.
using Divide = std::function<Answer(const PartGraph& graph, int parts)>;

/// One plan for each allowed shape: the best, by the evaluator, of all ways and repairs. Libraries look at neither the
/// direction of edges nor memory and may leave parts empty, so nothing they say is taken unchecked. Shapes that no way
/// divides are refused with the library's reason; those that the time limit does not reach, with that, once a plan
/// fits.
plan::PlanSet divided_plans(const plan::Problem& problem, plan::Evaluator& evaluate, const std::string& partitioner,
                            Seconds time_limit, const std::vector<Divide>& ways);

}  // namespace millrace::partitioners::library
