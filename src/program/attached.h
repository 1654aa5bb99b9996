// Reductions that may start inside of a computation (METHODS 5, level 2).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "program/instruction.h"

namespace millrace {

/// Forward, backward and its halves, recompute.
bool is_computation(InstructionKind kind);

/// Positions of the reductions that are attached to the computation at `position` of `list` (Instruction::op), in the
/// order in which they start.
std::vector<std::size_t> attached_reductions(std::span<const Instruction> list, std::size_t position);

}  // namespace millrace
