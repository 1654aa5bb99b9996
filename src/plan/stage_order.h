// Whether the stages of a pipeline can run one after the other: convex, acyclic, and listed in that order.
#pragma once

#include <optional>

#include "graph/graph.h"
#include "plan/plan.h"
#include "plan/validate.h"

namespace millrace::plan {

/// A partition is acyclic and convex iff stage(u) ≤ stage(v) for every edge u → v and some numbering (METHODS 6); the
/// listed order must be such a numbering. Names the stages and one edge of each step of what is wrong.
/// \pre every operator is in exactly one stage.
std::optional<Violation> stage_order_violation(const Pipeline& pipeline, const Graph& graph);

}  // namespace millrace::plan
