// y = a · b, or a · bᵀ, matrix by matrix over the leading axes.
#include "kernels/onednn/makers.h"
#include "kernels/onednn/parallel.h"

namespace millrace::kernels::onednn {
namespace {

class BatchMatmul : public OpKernel {
 public:
  explicit BatchMatmul(const Site& site)
      : threads_(site.threads), transpose_b_(site.op.attributes.boolean("transpose_b")) {
    const Dims& y = site.output_dims();
    m_ = y[y.size() - 2];
    n_ = y.back();
    k_ = site.input_dims(0).back();
    matrices_ = site.output_elements() / (m_ * n_);
  }

  void forward(const OpCall& call) override {
    const Gemm shape{
        .transpose_b = transpose_b_, .m = m_, .n = n_, .k = k_, .lda = k_, .ldb = transpose_b_ ? k_ : n_, .ldc = n_};
    multiply(shape, input(call, 0), m_ * k_, input(call, 1), k_ * n_, output(call), m_ * n_);
  }

  void backward_input(const OpCall& call) override {
    const float* dy = output_gradient(call);
    if (input_gradient(call, 0)) {  // dy · bᵀ
      const Gemm shape{
          .transpose_b = !transpose_b_, .m = m_, .n = k_, .k = n_, .lda = n_, .ldb = transpose_b_ ? k_ : n_, .ldc = k_};
      multiply(shape, dy, m_ * n_, input(call, 1), k_ * n_, input_gradient(call, 0), m_ * k_);
    }
    if (!input_gradient(call, 1)) return;
    if (transpose_b_) {  // dyᵀ · a
      const Gemm shape{.transpose_a = true, .m = n_, .n = k_, .k = m_, .lda = n_, .ldb = k_, .ldc = k_};
      multiply(shape, dy, m_ * n_, input(call, 0), m_ * k_, input_gradient(call, 1), k_ * n_);
    } else {  // aᵀ · dy
      const Gemm shape{.transpose_a = true, .m = k_, .n = n_, .k = m_, .lda = k_, .ldb = n_, .ldc = n_};
      multiply(shape, input(call, 0), m_ * k_, dy, m_ * n_, input_gradient(call, 1), k_ * n_);
    }
  }

 private:
  // Threads share the matrices where there are enough; otherwise they share each matrix.
  void multiply(const Gemm& shape, const float* a, std::int64_t step_a, const float* b, std::int64_t step_b, float* c,
                std::int64_t step_c) const {
    parallel_tasks(matrices_ >= threads_ ? threads_ : 1, matrices_, matrices_ * shape.m * shape.n,
                   [&](std::int64_t i, int) { gemm(shape, a + i * step_a, b + i * step_b, c + i * step_c); });
  }

  int threads_;
  bool transpose_b_;
  std::int64_t m_ = 0, n_ = 0, k_ = 0, matrices_ = 0;
};

}  // namespace

std::unique_ptr<OpKernel> make_batch_matmul(const Site& site) { return std::make_unique<BatchMatmul>(site); }

}  // namespace millrace::kernels::onednn
