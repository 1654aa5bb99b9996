// A plan judged, with recomputation where it is needed to fit and the problem allows it.
#pragma once

#include "plan/evaluator.h"
#include "plan/objective.h"
#include "plan/problem.h"

namespace millrace::plan {

/// Whether stage `stage` of `stages` recomputes all of its operators where the problem says so of every stage. A last
/// stage with one live micro-batch runs each backward right after its forward and keeps its activations.
bool recomputes_all(const Problem& problem, std::size_t stage, std::size_t stages);

/// Evaluates `plan`; where stages are over their devices' limits and the problem does not forbid recomputation, once
/// more with all operators of those stages recomputed. \pre the plan is valid.
Candidate fitted(const Problem& problem, Evaluator& evaluate, Plan plan);

}  // namespace millrace::plan
