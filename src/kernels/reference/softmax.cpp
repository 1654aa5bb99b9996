// Softmax over the last axis: y = exp(x − max) / Σ exp(x − max).
#include <algorithm>
#include <cmath>

#include "kernels/reference/families.h"
#include "kernels/reference/operands.h"
#include "kernels/reference/sums.h"

namespace millrace::kernels::reference {
namespace {

template <class T>
class Softmax : public OpKernel {
 public:
  explicit Softmax(const Setup& setup)
      : width_(setup.input_dims().back()), vectors_(setup.rows * element_count(setup.input_dims()) / width_) {}

  void forward(const OpCall& call) override {
    for (std::int64_t i = 0; i < vectors_; ++i) {
      const T* x = input<T>(call) + i * width_;
      T* y = output<T>(call) + i * width_;
      const T most = *std::max_element(x, x + width_);
      for (std::int64_t k = 0; k < width_; ++k) y[k] = std::exp(x[k] - most);
      const T sum = lane_sum<T>(width_, [y](std::int64_t k) { return y[k]; });
      for (std::int64_t k = 0; k < width_; ++k) y[k] /= sum;
    }
  }

  // dx = y · (dy − Σ dy·y).
  void backward_input(const OpCall& call) override {
    for (std::int64_t i = 0; i < vectors_; ++i) {
      const T* y = output<T>(call) + i * width_;
      const T* dy = output_gradient<T>(call) + i * width_;
      T* dx = input_gradient<T>(call) + i * width_;
      const T projection = dot(dy, y, width_);
      for (std::int64_t k = 0; k < width_; ++k) dx[k] = y[k] * (dy[k] - projection);
    }
  }

 private:
  std::int64_t width_, vectors_;
};

}  // namespace

std::unique_ptr<OpKernel> make_softmax(const Setup& setup) { return make_in_precision<Softmax>(setup); }

}  // namespace millrace::kernels::reference
