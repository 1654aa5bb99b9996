// Which operators are computed again, where the user says it beyond what partitioners choose (METHODS 3).
#pragma once

#include <cstdint>
#include <vector>

#include "plan/evaluator.h"
#include "plan/objective.h"
#include "plan/problem.h"

namespace millrace::planner {

struct RecomputeMask {
  enum class Kind : std::uint8_t {
    as_cut,        ///< what the partitioner says, by Problem::recompute
    all_but_last,  ///< all operators of all stages but the last of each pipeline
    chosen,        ///< of stages that recompute to fit, as few operators as do: those with most bytes a second first
    given          ///< `ops`, wherever they are
  };
  Kind kind = Kind::as_cut;
  std::vector<OpId> ops{};  ///< ascending
};

/// Changes the recomputation of the plan. \returns whether it did; the report is then of another plan.
bool apply(const RecomputeMask& mask, const plan::Problem& problem, plan::Evaluator& evaluate,
           plan::Candidate& candidate);

}  // namespace millrace::planner
