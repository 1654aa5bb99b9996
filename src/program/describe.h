// Instructions in words, for the verifier and the watchdog.
#pragma once

#include <cstddef>
#include <string>

#include "graph/graph.h"
#include "program/program.h"

namespace millrace {

/// "rank 2: receive_activation of blocks.0.add1.output, micro-batch 3, from rank 1"; "rank 0: forward of stage 1 of
/// pipeline 0, micro-batch 2"; "rank 1: reduce_gradients of bucket 0 (head.weight and 3 more) over ranks 1, 3".
/// \pre  `position` is in the instruction list of `rank`, and its indices are in range.
std::string describe(const Graph& graph, const Program& program, int rank, std::size_t position);

/// The same without the rank.
std::string describe(const Graph& graph, const Program& program, const Instruction& instruction);

}  // namespace millrace
