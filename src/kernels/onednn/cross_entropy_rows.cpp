// The loops of cross-entropy.
#include "kernels/onednn/cross_entropy_rows.h"

#include <algorithm>
#include <cmath>

#include "kernels/onednn/row_loops.h"
#include "kernels/reference/index_check.h"

namespace millrace::kernels::onednn {

PositionResult position_result(const float* x, std::int32_t right, float* line, std::int64_t classes) {
  const float most = row_max(x, classes);
  const float score = x[right];
  const bool first = score == most && std::find(x, x + right, most) == x + right;  // the lowest index wins ties
  return {most + std::log(row_exp(x, most, line, classes)) - score, first ? 1.0F : 0.0F};
}

void position_gradient(const float* x, std::int32_t right, float weight, float* dx, std::int64_t classes) {
  row_scale(dx, weight / row_exp(x, row_max(x, classes), dx, classes), classes);
  dx[right] -= weight;
}

void mean_results(const CrossEntropyShape& shape, const PositionResult* results, float* loss, float* correct) {
  const auto count = static_cast<double>(shape.positions);
  for (std::int64_t n = 0; n < shape.rows; ++n) {
    double losses = 0, corrects = 0;
    for (std::int64_t i = n * shape.positions; i < (n + 1) * shape.positions; ++i) {
      losses += static_cast<double>(results[i].loss);
      corrects += static_cast<double>(results[i].correct);
    }
    loss[n] = static_cast<float>(losses / count);
    correct[n] = static_cast<float>(corrects / count);
  }
}

void check_labels(const CrossEntropyShape& shape, const std::int32_t* labels) {
  for (std::int64_t i = 0; i < shape.all_positions(); ++i) {
    reference::checked_index(labels[i], shape.classes, *shape.op, i / shape.positions);
  }
}

}  // namespace millrace::kernels::onednn
