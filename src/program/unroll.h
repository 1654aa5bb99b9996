// Writes iterations of a program one after the other, as interpreters execute them.
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.h"

namespace millrace {

/// An instruction of a rank's list in one execution of it.
struct UnrolledInstruction {
  std::int32_t position = 0;   ///< in the rank's list
  std::int32_t iteration = 0;  ///< that it belongs to, from 0: a message is known by its transfer and this number
};

/// What each rank executes in `iterations` iterations from the first to the last, with all that the last ones leave
/// open drained: `iterations` + Program::overlap rounds of its list, without instructions whose iteration is none of
/// them. \pre  iterations >= 1
std::vector<std::vector<UnrolledInstruction>> unroll(const Program& program, int iterations);

}  // namespace millrace
