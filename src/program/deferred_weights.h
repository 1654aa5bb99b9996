// Deferred weight gradients: the last ones of an iteration run at its end layer by layer, so that buckets are complete
// one after the other while the rest is still computed (METHODS 5, level 2, over several micro-batches).
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"
#include "program/compute_order.h"
#include "program/program.h"

namespace millrace {

/// For how many last micro-batches each stage of `program` defers its weight gradients, by flat index. The stage with
/// the most bytes to reduce defers `micro_batches` (all, if it has fewer), another in proportion to its own, rounded
/// up: it needs as much less time to hide them in. A stage whose gradients nobody shares defers none. Those that do get
/// a segment a bucket (ProgramStage::weight_cuts).
/// \throws InvalidInput  a stage that would defer recomputes or is tensor-parallel.
std::vector<std::int64_t> divide_deferred_weights(const Graph& graph, Program& program, std::int64_t micro_batches);

/// The actions of a rank with those weight gradients at their end: stage after stage, the deepest first; in a stage
/// segment after segment, the last layers first; in a segment micro-batch after micro-batch, in the order in which they
/// were. A backward becomes a backward_input there. So sums keep their order, and input gradients go as soon as before.
/// \throws InvalidInput  actions that do not flush.
std::vector<ComputeAction> defer_weights(const std::vector<ComputeAction>& actions, const Program& program,
                                         const std::vector<std::int64_t>& deferred);

}  // namespace millrace
