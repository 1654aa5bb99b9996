// Losses of each sample, whose gradient is weighed by row: cross-entropy (means over positions), mean squared error.
#include <algorithm>
#include <cmath>

#include "kernels/onednn/makers.h"
#include "kernels/onednn/parallel.h"
#include "kernels/onednn/row_loops.h"
#include "kernels/onednn/vector_clones.h"
#include "kernels/reference/index_check.h"

namespace millrace::kernels::onednn {
namespace {

class CrossEntropy : public OpKernel {
 public:
  explicit CrossEntropy(const Site& site)
      : op_(site.op),
        threads_(site.threads),
        rows_(site.rows),
        positions_(element_count(site.input_dims(1))),
        classes_(site.input_dims(0).back()) {}

  /// Each row is read before its gradient is written: logits of a large vocabulary exist once.
  bool overwrites_input() const override { return true; }

  /// Of each position its loss and whether it is right; and for each thread a line of exponentials.
  std::int64_t scratch_bytes() const override {
    return aligned(2 * rows_ * positions_ * kFloatBytes) + threads_ * aligned(classes_ * kFloatBytes);
  }

  void forward(const OpCall& call) override {
    float* const results = scratch(call);
    float* const lines = results + aligned(2 * rows_ * positions_ * kFloatBytes) / kFloatBytes;
    check_labels(call);
    each_position([&](std::int64_t i, int thread) {
      const float* x = input(call) + i * classes_;
      const std::int32_t right = indices(call, 1)[i];
      const float most = row_max(x, classes_);
      float* line = lines + thread * aligned(classes_ * kFloatBytes) / kFloatBytes;
      results[2 * i] = most + std::log(row_exp(x, most, line, classes_)) - x[right];
      const bool first = std::find(x, x + right, most) == x + right;  // the lowest index wins ties
      results[2 * i + 1] = first && x[right] == most ? 1.0F : 0.0F;
    });
    for (std::int64_t n = 0; n < rows_; ++n) {
      double loss = 0;
      double correct = 0;
      for (std::int64_t i = n * positions_; i < (n + 1) * positions_; ++i) {
        loss += static_cast<double>(results[2 * i]);
        correct += static_cast<double>(results[2 * i + 1]);
      }
      output(call, 0)[n] = static_cast<float>(loss / static_cast<double>(positions_));
      output(call, 1)[n] = static_cast<float>(correct / static_cast<double>(positions_));
    }
  }

  // dx = row weight / positions · (softmax(x) − onehot(label)).
  void backward_input(const OpCall& call) override {
    if (!input_gradient(call)) return;
    each_position([&](std::int64_t i, int) {
      const float* x = input(call) + i * classes_;
      float* dx = input_gradient(call) + i * classes_;
      const float weight = output_gradient(call)[i / positions_] / static_cast<float>(positions_);
      row_scale(dx, weight / row_exp(x, row_max(x, classes_), dx, classes_), classes_);
      dx[indices(call, 1)[i]] -= weight;
    });
  }

 private:
  void check_labels(const OpCall& call) const {
    for (std::int64_t i = 0; i < rows_ * positions_; ++i) {
      reference::checked_index(indices(call, 1)[i], classes_, op_, i / positions_);
    }
  }

  template <class F>
  void each_position(F&& f) const {
    parallel_tasks(threads_, rows_ * positions_, rows_ * positions_ * classes_, f);
  }

  const Operator& op_;
  int threads_;
  std::int64_t rows_, positions_, classes_;
};

MILLRACE_VECTOR_CLONES void scaled_difference(const float* x, const float* y, float factor, float* z, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) z[i] = factor * (x[i] - y[i]);
}

class MeanSquaredError : public OpKernel {
 public:
  explicit MeanSquaredError(const Site& site)
      : threads_(site.threads), rows_(site.rows), elements_(element_count(site.input_dims())) {}

  /// A piece of differences for each thread.
  std::int64_t scratch_bytes() const override { return threads_ * kChunk * kFloatBytes; }

  void forward(const OpCall& call) override {
    parallel_tasks(threads_, rows_, rows_ * elements_, [&](std::int64_t n, int thread) {
      float* difference = scratch(call) + thread * kChunk;
      double sum = 0;
      for (std::int64_t i = 0; i < elements_; i += kChunk) {
        const std::int64_t count = std::min(kChunk, elements_ - i);
        scaled_difference(input(call, 0) + n * elements_ + i, input(call, 1) + n * elements_ + i, 1.0F, difference,
                          count);
        sum += static_cast<double>(row_squares(difference, 0.0F, count));
      }
      output(call)[n] = static_cast<float>(sum / static_cast<double>(elements_));
    });
  }

  void backward_input(const OpCall& call) override {
    for (std::size_t operand = 0; operand < 2; ++operand) {
      float* dx = input_gradient(call, operand);
      if (!dx) continue;
      parallel_tasks(threads_, rows_, rows_ * elements_, [&](std::int64_t n, int) {
        const float factor = output_gradient(call)[n] * 2 / static_cast<float>(elements_);
        scaled_difference(input(call, operand) + n * elements_, input(call, 1 - operand) + n * elements_, factor,
                          dx + n * elements_, elements_);
      });
    }
  }

 private:
  int threads_;
  std::int64_t rows_, elements_;
};

}  // namespace

std::unique_ptr<OpKernel> make_cross_entropy(const Site& site) { return std::make_unique<CrossEntropy>(site); }
std::unique_ptr<OpKernel> make_mean_squared_error(const Site& site) { return std::make_unique<MeanSquaredError>(site); }

}  // namespace millrace::kernels::onednn
