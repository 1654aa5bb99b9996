// Losses of each sample, whose gradient is weighed by row: cross-entropy (means over positions), mean squared error.
#include <algorithm>

#include "kernels/onednn/cross_entropy_rows.h"
#include "kernels/onednn/makers.h"
#include "kernels/onednn/parallel.h"
#include "kernels/onednn/row_loops.h"
#include "kernels/onednn/vector_clones.h"

namespace millrace::kernels::onednn {
namespace {

class CrossEntropy : public OpKernel {
 public:
  explicit CrossEntropy(const Site& site)
      : threads_(site.threads),
        shape_{&site.op, site.rows, element_count(site.input_dims(1)), site.input_dims(0).back()} {}

  /// Each row is read before its gradient is written: logits of a large vocabulary exist once.
  bool overwrites_input() const override { return true; }

  /// The results of each position; and for each thread a line of exponentials.
  std::int64_t scratch_bytes() const override { return results_bytes() + threads_ * line_bytes(); }

  void forward(const OpCall& call) override {
    auto* const results = static_cast<PositionResult*>(call.scratch);
    float* const lines = scratch(call) + results_bytes() / kFloatBytes;
    check_labels(shape_, indices(call, 1));
    each_position([&](std::int64_t i, int thread) {
      results[i] = position_result(input(call) + i * shape_.classes, indices(call, 1)[i],
                                   lines + thread * line_bytes() / kFloatBytes, shape_.classes);
    });
    mean_results(shape_, results, output(call, 0), output(call, 1));
  }

  void backward_input(const OpCall& call) override {
    if (!input_gradient(call)) return;
    each_position([&](std::int64_t i, int) {
      const std::int64_t at = i * shape_.classes;
      const float weight = output_gradient(call)[i / shape_.positions] / static_cast<float>(shape_.positions);
      position_gradient(input(call) + at, indices(call, 1)[i], weight, input_gradient(call) + at, shape_.classes);
    });
  }

 private:
  std::int64_t results_bytes() const {
    return aligned(shape_.all_positions() * static_cast<std::int64_t>(sizeof(PositionResult)));
  }
  std::int64_t line_bytes() const { return aligned(shape_.classes * kFloatBytes); }

  template <class F>
  void each_position(F&& f) const {
    parallel_tasks(threads_, shape_.all_positions(), shape_.all_positions() * shape_.classes, f);
  }

  int threads_;
  CrossEntropyShape shape_;
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
