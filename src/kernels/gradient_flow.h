// Which operators of a stage a gradient passes through, and which of their inputs it goes on to.
#pragma once

#include <vector>

#include "graph/stage_graph.h"

namespace millrace::kernels {

/// Backward skips an operator that no gradient reaches (from outside or from the loss), and an input gradient that
/// leads to no parameter and out of no border: an image's flatten needs none.
struct GradientFlow {
  /// By position in StageGraph::ops: backward is run.
  std::vector<bool> active;
  /// By position in StageGraph::ops and input: the gradient of this input is computed.
  std::vector<std::vector<bool>> wanted;
};

GradientFlow gradient_flow(const StageGraph& stage);

/// By position: the operators whose output has its whole gradient once the backward has come past this one, its first
/// reader. Descending; those that no gradient reaches and those whose gradient comes from outside alone are left out.
std::vector<std::vector<std::size_t>> completed_behind(const StageGraph& stage, const GradientFlow& flow);

}  // namespace millrace::kernels
