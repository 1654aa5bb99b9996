// Batch norm: each channel normalised over the valid samples (and positions) of a micro-batch, then scaled and shifted.
#include <cmath>

#include "kernels/reference/families.h"
#include "kernels/reference/operands.h"
#include "kernels/reference/sums.h"

namespace millrace::kernels::reference {
namespace {

template <class T>
class BatchNorm : public OpKernel {
 public:
  explicit BatchNorm(const Setup& setup)
      : rows_(setup.rows),
        channels_(setup.input_dims()[0]),
        places_(element_count(setup.input_dims()) / channels_),
        epsilon_(static_cast<T>(setup.op.attributes.real("epsilon"))),
        training_(setup.training) {}

  /// Mean and 1/σ of each channel.
  std::int64_t extra_bytes() const override {
    return training_ ? 2 * channels_ * static_cast<std::int64_t>(sizeof(T)) : 0;
  }

  void forward(const OpCall& call) override {
    const T* weight = parameter<T>(call, 0);
    const T* bias = parameter<T>(call, 1);
    for (std::int64_t c = 0; c < channels_; ++c) {
      T mean = buffer<T>(call, 0)[c];
      T variance = buffer<T>(call, 1)[c];
      if (training_ && call.valid_rows > 0) {
        statistics(input<T>(call), call.valid_rows, c, mean, variance);
        deposit(call, c, mean, variance);
      }
      const T inverse = 1 / std::sqrt(variance + epsilon_);
      if (training_) {
        static_cast<T*>(call.extra)[c] = mean;
        static_cast<T*>(call.extra)[channels_ + c] = inverse;
      }
      for (std::int64_t n = 0; n < rows_; ++n) {
        const T* x = input<T>(call) + at(n, c);
        T* y = output<T>(call) + at(n, c);
        for (std::int64_t p = 0; p < places_; ++p) y[p] = (x[p] - mean) * inverse * weight[c] + bias[c];
      }
    }
  }

  // With x̂ = (x − mean)/σ over N valid elements: dx = w/σ · (dy − Σdy/N − x̂ · Σ(dy·x̂)/N).
  void backward_input(const OpCall& call) override {
    if (!input_gradient<T>(call)) return;
    const std::int64_t valid = call.valid_rows;
    for (std::int64_t c = 0; c < channels_; ++c) {
      const T mean = static_cast<const T*>(call.extra)[c];
      const T inverse = static_cast<const T*>(call.extra)[channels_ + c];
      const T count = static_cast<T>(valid * places_);
      T sum = 0;
      T projection = 0;
      for (std::int64_t n = 0; n < valid; ++n) {
        sum += row_sum(call, n, c);
        projection += row_projection(call, n, c, mean, inverse);
      }
      for (std::int64_t n = 0; n < rows_; ++n) {
        const T* x = input<T>(call) + at(n, c);
        const T* dy = output_gradient<T>(call) + at(n, c);
        T* dx = input_gradient<T>(call) + at(n, c);
        const T factor = parameter<T>(call, 0)[c] * inverse;
        for (std::int64_t p = 0; p < places_; ++p) {
          dx[p] = n < valid ? factor * (dy[p] - sum / count - (x[p] - mean) * inverse * (projection / count)) : T{0};
        }
      }
    }
  }

  void backward_weight(const OpCall& call) override {
    T* dw = parameter_gradient<T>(call, 0);
    T* db = parameter_gradient<T>(call, 1);
    for (std::int64_t n = 0; n < call.valid_rows; ++n) {
      for (std::int64_t c = 0; c < channels_; ++c) {
        const T mean = static_cast<const T*>(call.extra)[c];
        const T inverse = static_cast<const T*>(call.extra)[channels_ + c];
        dw[c] += row_projection(call, n, c, mean, inverse);
        db[c] += row_sum(call, n, c);
      }
    }
  }

 private:
  std::int64_t at(std::int64_t n, std::int64_t c) const { return (n * channels_ + c) * places_; }

  /// Mean and biased variance of channel `c` over the first `valid` samples.
  void statistics(const T* x, std::int64_t valid, std::int64_t c, T& mean, T& variance) const {
    const T count = static_cast<T>(valid * places_);
    T sum = 0;
    for (std::int64_t n = 0; n < valid; ++n) {
      const T* v = x + at(n, c);
      sum += lane_sum<T>(places_, [v](std::int64_t p) { return v[p]; });
    }
    mean = sum / count;
    T squares = 0;
    for (std::int64_t n = 0; n < valid; ++n) {
      const T* v = x + at(n, c);
      const T m = mean;
      squares += lane_sum<T>(places_, [v, m](std::int64_t p) { return (v[p] - m) * (v[p] - m); });
    }
    variance = squares / count;
  }

  /// The micro-batch's share of the step's running statistics; the variance unbiased.
  void deposit(const OpCall& call, std::int64_t c, T mean, T variance) const {
    const std::int64_t count = call.valid_rows * places_;
    const T share = static_cast<T>(static_cast<double>(call.valid_rows) * call.row_weight);
    const T unbiased = count > 1 ? variance * static_cast<T>(count) / static_cast<T>(count - 1) : variance;
    buffer_gradient<T>(call, 0)[c] += share * mean;
    buffer_gradient<T>(call, 1)[c] += share * unbiased;
  }

  /// Σ dy over one sample's channel.
  T row_sum(const OpCall& call, std::int64_t n, std::int64_t c) const {
    const T* dy = output_gradient<T>(call) + at(n, c);
    return lane_sum<T>(places_, [dy](std::int64_t p) { return dy[p]; });
  }

  /// Σ dy·x̂ over one sample's channel.
  T row_projection(const OpCall& call, std::int64_t n, std::int64_t c, T mean, T inverse) const {
    const T* dy = output_gradient<T>(call) + at(n, c);
    const T* x = input<T>(call) + at(n, c);
    return lane_sum<T>(places_, [=](std::int64_t p) { return dy[p] * ((x[p] - mean) * inverse); });
  }

  std::int64_t rows_, channels_, places_;
  T epsilon_;
  bool training_;
};

}  // namespace

std::unique_ptr<OpKernel> make_batch_norm(const Setup& setup) { return make_in_precision<BatchNorm>(setup); }

}  // namespace millrace::kernels::reference
