// What stages of one rank pass to each other without a message, and which collectives divide a computation.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"
#include "program/program.h"

namespace millrace {

/// By flat stage index: stages on the same ranks and of the same pipeline that must have computed a micro-batch before.
struct RankLinks {
  /// Before its forward: those that compute what it reads, and the consumer that received a tensor for both.
  std::vector<std::vector<std::int32_t>> activation_from;
  /// Before its backward: those that read what it computes, as far as their gradient comes back.
  std::vector<std::vector<std::int32_t>> gradient_from;
};

RankLinks make_rank_links(const Graph& graph, const Program& program);

/// Collectives that divide the computation of `at`, in order: of its stage, for a forward (recompute: those of dropped
/// operators), a backward or a backward_input.
std::vector<std::int32_t> collectives_of(const Program& program, const Instruction& at);
/// How many those are.
std::int64_t collective_count(const Program& program, const Instruction& at);

}  // namespace millrace
