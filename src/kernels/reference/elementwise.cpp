// Operators that act on each element alone: relu, tanh, gelu, add, multiply.
#include <cmath>
#include <numbers>

#include "kernels/reference/families.h"
#include "kernels/reference/operands.h"

namespace millrace::kernels::reference {
namespace {

std::int64_t elements(const Setup& setup) { return setup.rows * element_count(setup.output_dims()); }

template <class T>
class Relu : public OpKernel {
 public:
  explicit Relu(const Setup& setup) : elements_(elements(setup)) {}

  void forward(const OpCall& call) override {
    const T* x = input<T>(call);
    T* y = output<T>(call);
    for (std::int64_t i = 0; i < elements_; ++i) y[i] = x[i] < 0 ? T{0} : x[i];  // NaN passes
  }

  void backward_input(const OpCall& call) override {
    const T* y = output<T>(call);
    const T* dy = output_gradient<T>(call);
    T* dx = input_gradient<T>(call);
    for (std::int64_t i = 0; i < elements_; ++i) dx[i] = y[i] > 0 ? dy[i] : T{0};
  }

 private:
  std::int64_t elements_;
};

template <class T>
class Tanh : public OpKernel {
 public:
  explicit Tanh(const Setup& setup) : elements_(elements(setup)) {}

  void forward(const OpCall& call) override {
    const T* x = input<T>(call);
    T* y = output<T>(call);
    for (std::int64_t i = 0; i < elements_; ++i) y[i] = std::tanh(x[i]);
  }

  void backward_input(const OpCall& call) override {
    const T* y = output<T>(call);
    const T* dy = output_gradient<T>(call);
    T* dx = input_gradient<T>(call);
    for (std::int64_t i = 0; i < elements_; ++i) dx[i] = dy[i] * (1 - y[i] * y[i]);
  }

 private:
  std::int64_t elements_;
};

// erf: x·Φ(x). tanh: x/2·(1 + tanh(√(2/π)(x + 0.044715x³))) (Hendrycks and Gimpel, arXiv:1606.08415).
template <class T>
class Gelu : public OpKernel {
 public:
  explicit Gelu(const Setup& setup)
      : elements_(elements(setup)), tanh_(setup.op.attributes.text("approximate") == "tanh") {}

  void forward(const OpCall& call) override {
    const T* x = input<T>(call);
    T* y = output<T>(call);
    for (std::int64_t i = 0; i < elements_; ++i) {
      y[i] = tanh_ ? x[i] / 2 * (1 + std::tanh(inner(x[i]))) : x[i] / 2 * (1 + std::erf(x[i] * kInverseSqrt2));
    }
  }

  void backward_input(const OpCall& call) override {
    const T* x = input<T>(call);
    const T* dy = output_gradient<T>(call);
    T* dx = input_gradient<T>(call);
    for (std::int64_t i = 0; i < elements_; ++i) dx[i] = dy[i] * (tanh_ ? tanh_slope(x[i]) : erf_slope(x[i]));
  }

 private:
  static constexpr T kInverseSqrt2 = std::numbers::sqrt2_v<T> / 2;
  static constexpr T kInverseSqrt2Pi = std::numbers::inv_sqrtpi_v<T> * kInverseSqrt2;
  static constexpr T kSqrt2OverPi = std::numbers::sqrt2_v<T> * std::numbers::inv_sqrtpi_v<T>;
  static constexpr T kCubic = T(0.044715);

  static T inner(T x) { return kSqrt2OverPi * (x + kCubic * x * x * x); }

  static T tanh_slope(T x) {
    const T t = std::tanh(inner(x));
    return (1 + t) / 2 + x / 2 * (1 - t * t) * kSqrt2OverPi * (1 + 3 * kCubic * x * x);
  }

  static T erf_slope(T x) { return (1 + std::erf(x * kInverseSqrt2)) / 2 + x * kInverseSqrt2Pi * std::exp(-x * x / 2); }

  std::int64_t elements_;
  bool tanh_;
};

template <class T>
class Add : public OpKernel {
 public:
  explicit Add(const Setup& setup) : elements_(elements(setup)) {}

  void forward(const OpCall& call) override {
    const T* a = input<T>(call, 0);
    const T* b = input<T>(call, 1);
    T* y = output<T>(call);
    for (std::int64_t i = 0; i < elements_; ++i) y[i] = a[i] + b[i];
  }

  void backward_input(const OpCall& call) override {
    const T* dy = output_gradient<T>(call);
    for (std::size_t operand = 0; operand < 2; ++operand) {
      T* dx = input_gradient<T>(call, operand);
      if (!dx) continue;
      for (std::int64_t i = 0; i < elements_; ++i) dx[i] = dy[i];
    }
  }

 private:
  std::int64_t elements_;
};

template <class T>
class Multiply : public OpKernel {
 public:
  explicit Multiply(const Setup& setup) : elements_(elements(setup)) {}

  void forward(const OpCall& call) override {
    const T* a = input<T>(call, 0);
    const T* b = input<T>(call, 1);
    T* y = output<T>(call);
    for (std::int64_t i = 0; i < elements_; ++i) y[i] = a[i] * b[i];
  }

  void backward_input(const OpCall& call) override {
    const T* dy = output_gradient<T>(call);
    for (std::size_t operand = 0; operand < 2; ++operand) {
      const T* other = input<T>(call, 1 - operand);
      T* dx = input_gradient<T>(call, operand);
      if (!dx) continue;
      for (std::int64_t i = 0; i < elements_; ++i) dx[i] = dy[i] * other[i];
    }
  }

 private:
  std::int64_t elements_;
};

}  // namespace

std::unique_ptr<OpKernel> make_relu(const Setup& setup) { return make_in_precision<Relu>(setup); }
std::unique_ptr<OpKernel> make_tanh(const Setup& setup) { return make_in_precision<Tanh>(setup); }
std::unique_ptr<OpKernel> make_gelu(const Setup& setup) { return make_in_precision<Gelu>(setup); }
std::unique_ptr<OpKernel> make_add(const Setup& setup) { return make_in_precision<Add>(setup); }
std::unique_ptr<OpKernel> make_multiply(const Setup& setup) { return make_in_precision<Multiply>(setup); }

}  // namespace millrace::kernels::reference
