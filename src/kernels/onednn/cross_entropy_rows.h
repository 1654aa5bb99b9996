// Softmax cross-entropy of single positions, with whole logits or some rows of them at a time: the same bits either
// way.
#pragma once

#include <cstdint>

#include "graph/graph.h"
#include "kernels/op_kernel.h"

namespace millrace::kernels::onednn {

/// The sizes of a cross-entropy operator over some rows.
struct CrossEntropyShape {
  const Operator* op;
  std::int64_t rows, positions, classes;

  std::int64_t all_positions() const { return rows * positions; }
};

/// What a position adds to the results of its row.
struct PositionResult {
  float loss = 0;
  float correct = 0;
};

/// `line` holds exponentials afterwards; it may be `x`.
PositionResult position_result(const float* x, std::int32_t right, float* line, std::int64_t classes);

/// dx = weight · (softmax(x) − onehot(right)); dx may be x.
void position_gradient(const float* x, std::int32_t right, float weight, float* dx, std::int64_t classes);

/// Means over the positions of each row.
void mean_results(const CrossEntropyShape& shape, const PositionResult* results, float* loss, float* correct);

/// \throws RunFailed  a label that is no class.
void check_labels(const CrossEntropyShape& shape, const std::int32_t* labels);

}  // namespace millrace::kernels::onednn
