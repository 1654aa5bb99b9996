// Layer norm: each vector of the last axis normalised by its own mean and variance, then scaled and shifted.
#include <cmath>

#include "kernels/reference/families.h"
#include "kernels/reference/operands.h"
#include "kernels/reference/sums.h"

namespace millrace::kernels::reference {
namespace {

template <class T>
class LayerNorm : public OpKernel {
 public:
  explicit LayerNorm(const Setup& setup)
      : width_(setup.input_dims().back()),
        vectors_(setup.rows * (element_count(setup.input_dims()) / width_)),
        epsilon_(static_cast<T>(setup.op.attributes.real("epsilon"))),
        training_(setup.training) {}

  /// Mean and 1/σ of each vector.
  std::int64_t extra_bytes() const override {
    return training_ ? 2 * vectors_ * static_cast<std::int64_t>(sizeof(T)) : 0;
  }

  void forward(const OpCall& call) override {
    const T* weight = parameter<T>(call, 0);
    const T* bias = parameter<T>(call, 1);
    for (std::int64_t i = 0; i < vectors_; ++i) {
      const T* x = input<T>(call) + i * width_;
      T* y = output<T>(call) + i * width_;
      const T count = static_cast<T>(width_);
      const T mean = lane_sum<T>(width_, [x](std::int64_t k) { return x[k]; }) / count;
      const T variance = lane_sum<T>(width_, [=](std::int64_t k) { return (x[k] - mean) * (x[k] - mean); }) / count;
      const T inverse = 1 / std::sqrt(variance + epsilon_);
      if (training_) {
        static_cast<T*>(call.extra)[2 * i] = mean;
        static_cast<T*>(call.extra)[2 * i + 1] = inverse;
      }
      for (std::int64_t k = 0; k < width_; ++k) y[k] = (x[k] - mean) * inverse * weight[k] + bias[k];
    }
  }

  // With x̂ = (x − mean)/σ and g = w·dy: dx = 1/σ · (g − mean(g) − x̂ · mean(g·x̂)).
  void backward_input(const OpCall& call) override {
    if (!input_gradient<T>(call)) return;
    const T* weight = parameter<T>(call, 0);
    for (std::int64_t i = 0; i < vectors_; ++i) {
      const T* x = input<T>(call) + i * width_;
      const T* dy = output_gradient<T>(call) + i * width_;
      T* dx = input_gradient<T>(call) + i * width_;
      const T mean = static_cast<const T*>(call.extra)[2 * i];
      const T inverse = static_cast<const T*>(call.extra)[2 * i + 1];
      const T count = static_cast<T>(width_);
      const T sum = dot(dy, weight, width_) / count;
      const T projection =
          lane_sum<T>(width_, [=](std::int64_t k) { return dy[k] * weight[k] * ((x[k] - mean) * inverse); }) / count;
      for (std::int64_t k = 0; k < width_; ++k) {
        dx[k] = inverse * (dy[k] * weight[k] - sum - (x[k] - mean) * inverse * projection);
      }
    }
  }

  void backward_weight(const OpCall& call) override {
    T* dw = parameter_gradient<T>(call, 0);
    T* db = parameter_gradient<T>(call, 1);
    for (std::int64_t i = 0; i < vectors_; ++i) {
      const T* x = input<T>(call) + i * width_;
      const T* dy = output_gradient<T>(call) + i * width_;
      const T mean = static_cast<const T*>(call.extra)[2 * i];
      const T inverse = static_cast<const T*>(call.extra)[2 * i + 1];
      for (std::int64_t k = 0; k < width_; ++k) dw[k] += dy[k] * ((x[k] - mean) * inverse);
      add(db, dy, width_);
    }
  }

 private:
  std::int64_t width_, vectors_;
  T epsilon_;
  bool training_;
};

}  // namespace

std::unique_ptr<OpKernel> make_layer_norm(const Setup& setup) { return make_in_precision<LayerNorm>(setup); }

}  // namespace millrace::kernels::reference
