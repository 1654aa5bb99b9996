// How many nodes of the gradient tree a rank holds at once: known from the order of its program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "program/program.h"

namespace millrace::runtime {

/// For a stage (index in Program::stages) that `rank` holds.
std::size_t tree_nodes(const Program& program, std::int32_t stage, int rank);

}  // namespace millrace::runtime
