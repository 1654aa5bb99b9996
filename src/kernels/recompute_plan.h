// What of a stage runs again before its backward, and which tensors that brings back (METHODS 3).
#pragma once

#include <cstddef>
#include <span>
#include <unordered_set>
#include <vector>

#include "graph/stage_graph.h"
#include "kernels/gradient_flow.h"

namespace millrace::kernels {

/// Positions are those of StageGraph::ops.
struct RecomputePlan {
  /// Positions, ascending, of those that run again first: before the backward begins.
  std::vector<std::size_t> first;
  /// By position of an operator: the positions, ascending, of others that run again right before its backward.
  std::vector<std::vector<std::size_t>> before;
  /// By position: what the operator keeps beside tensors is dropped too.
  std::vector<bool> drops_extra;
  /// Tensors that are dropped and written again, by those that run again. All others that backward reads stay.
  std::unordered_set<TensorId> dropped;
};

/// \param recompute    ascending; of the stage's operators.
/// \param drops_extra  by position: the operator's kernel keeps something beside tensors that may be dropped.
/// An operator that backward needs nothing of does not run again.
RecomputePlan plan_recompute(const StageGraph& stage, const GradientFlow& flow, std::span<const OpId> recompute,
                             const std::vector<bool>& drops_extra);

}  // namespace millrace::kernels
