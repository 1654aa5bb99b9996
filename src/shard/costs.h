// What a signature of one operator costs on one axis: the conversions of its edges, there and back.
#pragma once

#include "shard/decision.h"
#include "shard/reshard.h"
#include "shard/tensor_table.h"

namespace millrace::shard {

/// The gradient that a backward gives for an operand: parts for parts, the whole for a partial sum; for a whole operand
/// a partial sum wherever the devices compute different things, else the whole.
Property gradient_of(Property operand, const Use& use);
/// The gradient that the backward of an operator takes for an output, and that a tensor's gradient is kept as.
constexpr Property gradient_kept(Property property) { return property.is_split() ? property : kReplicated; }

/// Whether a gradient goes back to the operand: to parameters and to what operators made, never to indices.
bool has_gradient(const Graph& graph, const Operand& operand);

/// An edge of the graph on one axis.
struct Edge {
  Property kept;    ///< how the tensor is kept
  Property needed;  ///< what the operator takes or gives
  bool output = false;
  bool gradient = true;
  double bytes = 0;
};

/// Forward and backward time of an edge of an operator under `use`.
Seconds edge_time(const Edge& edge, const Use& use, int devices, cluster::Link link);

/// Whether a partial sum may go through the operator on `axis`: all its terms are partial sums, and a product does not
/// make it larger.
bool passes_partial(const Graph& graph, const OpTable& ops, const TensorTable& tensors,
                    const std::vector<Placement>& placements, OpId op, const Use& use, int axis);

}  // namespace millrace::shard
