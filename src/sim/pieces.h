// Which operators of a stage an instruction computes, and how long a rank takes.
#pragma once

#include <span>

#include "program/program.h"
#include "sim/costs.h"

namespace millrace::sim {

/// The operators of a computation: the stage's, or those that it recomputes; of a divided one, those of the segment.
/// Segments end behind the operators of the stage's collectives: ascending in a forward, descending in a backward.
/// Those of deferred weight gradients are the stage's own (ProgramStage::weight_cuts).
std::span<const OpId> ops_of(const Program& program, const Instruction& computation);

/// What a piece takes on its rank: of operators that are split, the part that the rank does. Nothing for no rows.
Seconds time_of(const Piece& piece, const Program& program, const SimCosts& costs);

}  // namespace millrace::sim
