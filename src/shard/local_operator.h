// One operator as one device runs it: attributes and dimensions of its parts.
#pragma once

#include <optional>
#include <vector>

#include "shard/decision.h"
#include "shard/mesh.h"
#include "shard/tensor_table.h"

namespace millrace::shard {

struct LocalOperator {
  Attributes attributes;
  std::vector<Box> boxes{};  ///< of each operand, as OpTable lists them
  /// Where the operator holds a part of what indices name (rows of a table, classes): that part. Others count nothing.
  std::optional<Interval> indices{};
  /// The letters `reduced` whose devices take part in a reduction inside the operator, as a mask of axes.
  unsigned inner_axes = 0;
};

LocalOperator local_operator(const Graph& graph, const OpTable& ops, const TensorTable& tensors, const Mesh& mesh,
                             OpId op, const Uses& uses, int device);

/// Extents of a box without the batch axis, where the tensor has one.
Dims local_dims(const Box& box, bool batched);

}  // namespace millrace::shard
