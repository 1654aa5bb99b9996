// Which operators of a stage an instruction computes, and where reductions start inside of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "program/program.h"

namespace millrace::sim {

/// The operators of a computation: the stage's, or those that it recomputes; of a divided one, those of the segment.
/// Segments end behind the operators of the stage's collectives: ascending in a forward, descending in a backward.
std::span<const OpId> ops_of(const Program& program, const Instruction& computation);

/// Positions of the reductions that are attached to the computation at `position` of `list` (Instruction::op), in the
/// order in which they start.
std::vector<std::size_t> attached_reductions(std::span<const Instruction> list, std::size_t position);

}  // namespace millrace::sim
