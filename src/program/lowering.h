// From compute order to program: inserts transfers, reductions and updates around the computation (METHODS 4).
#pragma once

#include <cstdint>

#include "graph/graph.h"
#include "plan/plan.h"
#include "program/compute_order.h"
#include "program/program.h"

namespace millrace {

struct LoweringOptions {
  int receive_window = 1;          ///< receives posted ahead of the one waited for, per edge and peer; at least 0
  std::int32_t tag_limit = 32767;  ///< highest tag that the transport takes; 32767 is what MPI promises
};

/// The program of one training iteration on `batch` rows. Receives stand right before the computation that needs
/// them, sends right after the one that makes them. A rank whose rows of a micro-batch are empty still lists the
/// computation (interpreters skip it) and takes part in all reductions; messages without rows do not exist. A gradient
/// that comes back from several stages is summed in the order of its receives: latest stage first, then by rows.
/// A bucket with one owner has no reduce_gradients, only its update. Every rank enters reduce_norm, with or without
/// parameters.
/// \pre  the plan is valid for the graph.
/// \throws InvalidInput  a rank that holds two stages, replicas of several devices, recomputation (not offered by
///                       programs), or more edges between two ranks than tags.
Program lower(const Graph& graph, const Plan& plan, const ComputeOrder& order, std::int64_t batch,
              const LoweringOptions& options = {});

/// The forwards of `batch` rows alone, micro-batch after micro-batch, with the same stages and buckets (so the same
/// storage order) as the training program. One slot serves every stage.
Program lower_evaluation(const Graph& graph, const Plan& plan, std::int64_t batch, const LoweringOptions& options = {});

}  // namespace millrace
