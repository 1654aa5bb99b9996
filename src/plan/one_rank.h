// The plan of one rank that a split plan must equal (METHODS: any synchronous plan gives the gradients of one rank).
#pragma once

#include <cstdint>

#include "graph/graph.h"
#include "plan/plan.h"

namespace millrace::plan {

/// The whole graph on device 0, with as many micro-batches as the plan forms over all pipelines. Batch norm normalises
/// within the rows of a replica, so with buffers in the graph the micro-batches are those rows.
/// \pre  `plan` is valid for the graph and the batch.
/// \throws InvalidInput  when batch norm sees rows that one rank cannot form as its micro-batches: replicas that differ
///                       between stages, or a batch that does not divide.
Plan one_rank_plan(const Plan& plan, const Graph& graph, std::int64_t batch);

}  // namespace millrace::plan
