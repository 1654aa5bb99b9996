// What forward and backward share while collectives are inserted: values, conversions and their costs.
#pragma once

#include <vector>

#include "shard/sharded_graph.h"

namespace millrace::shard {

struct Expansion {
  const Graph& graph;
  const OpTable& ops;
  const TensorTable& tensors;
  const Mesh& mesh;
  const MeshLinks& links;
  const ExpandOptions& options;
  ShardedGraph result;

  ValueId value(TensorId tensor, const Placement& placement, bool gradient);
  Placement operand_placement(OpId op, std::size_t operand) const;
  Seconds time(TensorId tensor, const std::vector<Step>& steps) const;

  /// Appends the steps to `list`; the values between are noted in `there`, where it is given.
  ValueId convert(std::vector<Instruction>& list, ValueId from, const std::vector<Step>& steps, OpId behind,
                  bool per_iteration, std::vector<ValueId>* there);

  /// The reductions inside the operator.
  std::vector<InnerReduction> inner(OpId op, bool forward) const;
};

/// The transposed list: gradients from the loss to the parameters.
void add_backward(Expansion& work);

}  // namespace millrace::shard
