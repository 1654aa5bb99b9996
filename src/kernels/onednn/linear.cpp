// y = x · Wᵀ + b over the last axis.
#include "kernels/onednn/makers.h"
#include "kernels/onednn/parallel.h"
#include "kernels/onednn/row_loops.h"

namespace millrace::kernels::onednn {
namespace {

class Linear : public OpKernel {
 public:
  explicit Linear(const Site& site)
      : threads_(site.threads),
        k_(site.input_dims().back()),
        o_(site.output_dims().back()),
        m_(site.input_elements() / k_),
        bias_(site.op.attributes.boolean("bias")) {}

  void forward(const OpCall& call) override {
    if (bias_) {
      const float* b = parameter(call, 1);
      float* y = output(call);
      parallel_chunks(threads_, m_, std::max<std::int64_t>(1, kChunk / o_), m_ * o_,
                      [=, this](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t r = begin; r < end; ++r) std::copy(b, b + o_, y + r * o_);
                      });
    }
    gemm({.transpose_b = true, .m = m_, .n = o_, .k = k_, .lda = k_, .ldb = k_, .ldc = o_, .beta = bias_ ? 1.0F : 0.0F},
         input(call), parameter(call, 0), output(call));
  }

  void backward_input(const OpCall& call) override {
    if (!input_gradient(call)) return;
    gemm({.m = m_, .n = k_, .k = o_, .lda = o_, .ldb = k_, .ldc = k_}, output_gradient(call), parameter(call, 0),
         input_gradient(call));
  }

  void backward_weight(const OpCall& call) override {
    gemm({.transpose_a = true, .m = o_, .n = k_, .k = m_, .lda = o_, .ldb = k_, .ldc = k_, .beta = 1.0F},
         output_gradient(call), input(call), parameter_gradient(call, 0));
    if (bias_) add_column_sums(threads_, output_gradient(call), m_, o_, parameter_gradient(call, 1));
  }

 private:
  int threads_;
  std::int64_t k_, o_, m_;
  bool bias_;
};

}  // namespace

std::unique_ptr<OpKernel> make_linear(const Site& site) { return std::make_unique<Linear>(site); }

}  // namespace millrace::kernels::onednn
