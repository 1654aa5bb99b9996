// Linear: y[i, o] = Σ_k x[i, k]·w[o, k] + b[o] for each vector of each sample.
#include <algorithm>

#include "kernels/factored_products.h"
#include "kernels/reference/families.h"
#include "kernels/reference/operands.h"
#include "kernels/reference/sums.h"

namespace millrace::kernels::reference {
namespace {

template <class T>
class Linear : public OpKernel {
 public:
  explicit Linear(const Setup& setup)
      : in_(setup.input_dims().back()),
        out_(setup.output_dims().back()),
        vectors_(setup.rows * (element_count(setup.output_dims()) / out_)),
        bias_(setup.op.parameters.size() > 1) {}

  void forward(const OpCall& call) override {
    const T* w = parameter<T>(call, 0);
    for (std::int64_t i = 0; i < vectors_; ++i) {
      const T* x = input<T>(call) + i * in_;
      T* y = output<T>(call) + i * out_;
      for (std::int64_t o = 0; o < out_; ++o) y[o] = dot(x, w + o * in_, in_);
      if (bias_) add(y, parameter<T>(call, 1), out_);
    }
  }

  void backward_input(const OpCall& call) override {
    if (!input_gradient<T>(call)) return;
    const T* w = parameter<T>(call, 0);
    for (std::int64_t i = 0; i < vectors_; ++i) {
      const T* dy = output_gradient<T>(call) + i * out_;
      T* dx = input_gradient<T>(call) + i * in_;
      std::fill_n(dx, in_, T{0});
      for (std::int64_t o = 0; o < out_; ++o) add_scaled(dx, dy[o], w + o * in_, in_);
    }
  }

  void backward_weight(const OpCall& call) override {
    if (call.factors != nullptr) {
      keep_factors(input<T>(call), output_gradient<T>(call), {vectors_, in_, out_}, vectors_,
                   static_cast<T*>(call.factors));
    } else {
      add_products(call, parameter_gradient<T>(call, 0));
    }
    for (std::int64_t i = 0; i < vectors_ && bias_; ++i) {
      add(parameter_gradient<T>(call, 1), output_gradient<T>(call) + i * out_, out_);
    }
  }

 private:
  void add_products(const OpCall& call, T* dw) const {
    for (std::int64_t i = 0; i < vectors_; ++i) {
      const T* x = input<T>(call) + i * in_;
      const T* dy = output_gradient<T>(call) + i * out_;
      for (std::int64_t o = 0; o < out_; ++o) add_scaled(dw + o * in_, dy[o], x, in_);
    }
  }

  std::int64_t in_, out_, vectors_;
  bool bias_;
};

}  // namespace

std::unique_ptr<OpKernel> make_linear(const Setup& setup) { return make_in_precision<Linear>(setup); }

}  // namespace millrace::kernels::reference
