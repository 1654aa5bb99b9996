// Losses of each sample, whose gradient is weighed by row: cross-entropy (means over positions), mean squared error.
#include <algorithm>
#include <cmath>

#include "kernels/reference/families.h"
#include "kernels/reference/index_check.h"
#include "kernels/reference/operands.h"
#include "kernels/reference/sums.h"

namespace millrace::kernels::reference {
namespace {

template <class T>
class CrossEntropy : public OpKernel {
 public:
  explicit CrossEntropy(const Setup& setup)
      : op_(setup.op),
        rows_(setup.rows),
        positions_(element_count(setup.input_dims(1))),
        classes_(setup.input_dims(0).back()) {}

  void forward(const OpCall& call) override {
    for (std::int64_t n = 0; n < rows_; ++n) {
      T loss = 0;
      T correct = 0;
      for (std::int64_t i = n * positions_; i < (n + 1) * positions_; ++i) {
        const T* x = input<T>(call) + i * classes_;
        const std::int64_t right = label(call, i);
        const T* most = std::max_element(x, x + classes_);  // the first of equals
        loss += log_sum(x, *most) - x[right];
        correct += most - x == right ? T{1} : T{0};
      }
      output<T>(call, 0)[n] = loss / static_cast<T>(positions_);
      output<T>(call, 1)[n] = correct / static_cast<T>(positions_);
    }
  }

  // dx = row weight / positions · (softmax(x) − onehot(label)).
  void backward_input(const OpCall& call) override {
    for (std::int64_t i = 0; i < rows_ * positions_; ++i) {
      const T* x = input<T>(call) + i * classes_;
      T* dx = input_gradient<T>(call) + i * classes_;
      const T weight = output_gradient<T>(call)[i / positions_] / static_cast<T>(positions_);
      const T shift = log_sum(x, *std::max_element(x, x + classes_));
      for (std::int64_t k = 0; k < classes_; ++k) dx[k] = weight * std::exp(x[k] - shift);
      dx[label(call, i)] -= weight;
    }
  }

 private:
  /// log Σ exp(x).
  T log_sum(const T* x, T most) const {
    return most + std::log(lane_sum<T>(classes_, [x, most](std::int64_t k) { return std::exp(x[k] - most); }));
  }

  std::int64_t label(const OpCall& call, std::int64_t i) const {
    return checked_index(input<std::int32_t>(call, 1)[i], classes_, op_, i / positions_);
  }

  const Operator& op_;
  std::int64_t rows_, positions_, classes_;
};

template <class T>
class MeanSquaredError : public OpKernel {
 public:
  explicit MeanSquaredError(const Setup& setup) : rows_(setup.rows), elements_(element_count(setup.input_dims())) {}

  void forward(const OpCall& call) override {
    for (std::int64_t n = 0; n < rows_; ++n) {
      const T* x = input<T>(call, 0) + n * elements_;
      const T* target = input<T>(call, 1) + n * elements_;
      output<T>(call)[n] =
          lane_sum<T>(elements_, [=](std::int64_t i) { return (x[i] - target[i]) * (x[i] - target[i]); }) /
          static_cast<T>(elements_);
    }
  }

  void backward_input(const OpCall& call) override {
    for (std::size_t operand = 0; operand < 2; ++operand) {
      const T* own = input<T>(call, operand);
      const T* other = input<T>(call, 1 - operand);
      T* dx = input_gradient<T>(call, operand);
      if (!dx) continue;
      for (std::int64_t i = 0; i < rows_ * elements_; ++i) {
        dx[i] = output_gradient<T>(call)[i / elements_] * 2 / static_cast<T>(elements_) * (own[i] - other[i]);
      }
    }
  }

 private:
  std::int64_t rows_, elements_;
};

}  // namespace

std::unique_ptr<OpKernel> make_cross_entropy(const Setup& setup) { return make_in_precision<CrossEntropy>(setup); }
std::unique_ptr<OpKernel> make_mean_squared_error(const Setup& setup) {
  return make_in_precision<MeanSquaredError>(setup);
}

}  // namespace millrace::kernels::reference
