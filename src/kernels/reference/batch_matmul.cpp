// Products of matrices, one for each leading index: y[m, n] = Σ_k a[m, k]·b[k, n], or b[n, k] when transposed.
#include <algorithm>

#include "kernels/reference/families.h"
#include "kernels/reference/operands.h"
#include "kernels/reference/sums.h"

namespace millrace::kernels::reference {
namespace {

template <class T>
class BatchMatmul : public OpKernel {
 public:
  explicit BatchMatmul(const Setup& setup)
      : m_(setup.output_dims()[setup.output_dims().size() - 2]),
        n_(setup.output_dims().back()),
        k_(setup.input_dims(0).back()),
        matrices_(setup.rows * element_count(setup.output_dims()) / (m_ * n_)),
        transposed_(setup.op.attributes.boolean("transpose_b")) {}

  void forward(const OpCall& call) override {
    for (std::int64_t i = 0; i < matrices_; ++i) {
      const T* a = input<T>(call, 0) + i * m_ * k_;
      const T* b = input<T>(call, 1) + i * k_ * n_;
      T* y = output<T>(call) + i * m_ * n_;
      if (!transposed_) std::fill_n(y, m_ * n_, T{0});
      for (std::int64_t m = 0; m < m_; ++m) {
        if (transposed_) {
          for (std::int64_t n = 0; n < n_; ++n) y[m * n_ + n] = dot(a + m * k_, b + n * k_, k_);
        } else {
          for (std::int64_t k = 0; k < k_; ++k) add_scaled(y + m * n_, a[m * k_ + k], b + k * n_, n_);
        }
      }
    }
  }

  void backward_input(const OpCall& call) override {
    for (std::int64_t i = 0; i < matrices_; ++i) {
      const T* dy = output_gradient<T>(call) + i * m_ * n_;
      if (T* da = input_gradient<T>(call, 0)) backward_a(dy, input<T>(call, 1) + i * k_ * n_, da + i * m_ * k_);
      if (T* db = input_gradient<T>(call, 1)) backward_b(dy, input<T>(call, 0) + i * m_ * k_, db + i * k_ * n_);
    }
  }

 private:
  void backward_a(const T* dy, const T* b, T* da) const {
    if (transposed_) std::fill_n(da, m_ * k_, T{0});
    for (std::int64_t m = 0; m < m_; ++m) {
      if (transposed_) {
        for (std::int64_t n = 0; n < n_; ++n) add_scaled(da + m * k_, dy[m * n_ + n], b + n * k_, k_);
      } else {
        for (std::int64_t k = 0; k < k_; ++k) da[m * k_ + k] = dot(dy + m * n_, b + k * n_, n_);
      }
    }
  }

  void backward_b(const T* dy, const T* a, T* db) const {
    std::fill_n(db, k_ * n_, T{0});
    for (std::int64_t m = 0; m < m_; ++m) {
      if (transposed_) {
        for (std::int64_t n = 0; n < n_; ++n) add_scaled(db + n * k_, dy[m * n_ + n], a + m * k_, k_);
      } else {
        for (std::int64_t k = 0; k < k_; ++k) add_scaled(db + k * n_, a[m * k_ + k], dy + m * n_, n_);
      }
    }
  }

  std::int64_t m_, n_, k_, matrices_;
  bool transposed_;
};

}  // namespace

std::unique_ptr<OpKernel> make_batch_matmul(const Setup& setup) { return make_in_precision<BatchMatmul>(setup); }

}  // namespace millrace::kernels::reference
