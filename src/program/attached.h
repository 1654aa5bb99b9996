// Reductions and updates that happen inside of a computation (METHODS 5, level 2).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "program/instruction.h"

namespace millrace {

/// Forward, backward and its halves, recompute.
bool is_computation(InstructionKind kind);

/// reduce_gradients, update_weights or gather_weights.
bool is_of_bucket(InstructionKind kind);

/// Positions of what is attached to the computation at `position` of `list` (Instruction::op), in the order in which it
/// happens.
std::vector<std::size_t> attached_to(std::span<const Instruction> list, std::size_t position);

}  // namespace millrace
