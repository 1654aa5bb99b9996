// Weight gradients that are computed a part of the stage's layers at a time, and when a micro-batch is over.
#pragma once

#include <cstdint>
#include <span>

#include "program/program.h"

namespace millrace {

/// The operators of segment `segment` of a backward_weight of the stage (ProgramStage::weight_cuts); -1: all of them.
std::span<const OpId> weight_ops(const ProgramStage& stage, std::int32_t segment);

/// Whether what the micro-batch keeps is freed by this instruction: its backward, or the last segment of its
/// backward_weight; in evaluation its forward. A backward that collectives divide frees with its first segment.
bool ends_micro_batch(const Program& program, const Instruction& at);

}  // namespace millrace
