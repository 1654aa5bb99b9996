// y = x · Wᵀ + b over the last axis.
#include <algorithm>

#include "kernels/factored_products.h"
#include "kernels/onednn/makers.h"
#include "kernels/onednn/matrix_product.h"
#include "kernels/onednn/parallel.h"
#include "kernels/onednn/row_loops.h"

namespace millrace::kernels::onednn {
namespace {

class Linear : public OpKernel {
 public:
  Linear(const Site& site, Variants* variants)
      : threads_(site.threads),
        k_(site.input_dims().back()),
        o_(site.output_dims().back()),
        m_(site.input_elements() / k_),
        bias_(site.op.attributes.boolean("bias")) {
    const LinearShape shape{m_, k_, o_, bias_};
    forward_ = LinearProduct(site.engine, Pass::forward, shape, variants);
    if (!site.training) return;
    // Of a graph's own inputs no gradient is wanted, unless it is of a stage split over ranks: then by sgemm.
    const bool inside = site.graph.tensor(site.op.inputs[0]).role == Role::activation;
    backward_input_ = LinearProduct(site.engine, Pass::backward_data, shape, inside ? variants : nullptr);
    backward_weight_ = LinearProduct(site.engine, Pass::backward_weights, shape, variants);
  }

  std::int64_t scratch_bytes() const override {
    return std::max({forward_.scratch_bytes(), backward_input_.scratch_bytes(), backward_weight_.scratch_bytes()});
  }

  void forward(const OpCall& call) override {
    if (bias_) {
      const float* b = parameter(call, 1);
      float* y = output(call);
      parallel_chunks(threads_, m_, std::max<std::int64_t>(1, kChunk / o_), m_ * o_,
                      [=, this](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t r = begin; r < end; ++r) std::copy(b, b + o_, y + r * o_);
                      });
    }
    forward_.run(input(call), parameter(call, 0), output(call), call.scratch);
  }

  void backward_input(const OpCall& call) override {
    if (!input_gradient(call)) return;
    backward_input_.run(output_gradient(call), parameter(call, 0), input_gradient(call), call.scratch);
  }

  bool can_overwrite() const override { return true; }
  void backward_weight(const OpCall& call) override {
    if (call.factors != nullptr) {
      keep_factors(input(call), output_gradient(call), {m_, k_, o_}, m_, static_cast<float*>(call.factors));
    } else {
      backward_weight_.run(output_gradient(call), input(call), parameter_gradient(call, 0), call.scratch,
                           call.overwrite);
    }
    if (bias_ && call.overwrite) std::fill_n(parameter_gradient(call, 1), o_, 0.0F);
    if (bias_) add_column_sums(threads_, output_gradient(call), m_, o_, parameter_gradient(call, 1));
  }

 private:
  int threads_;
  std::int64_t k_, o_, m_;
  bool bias_;
  LinearProduct forward_, backward_input_, backward_weight_;
};

}  // namespace

std::unique_ptr<OpKernel> make_linear(const Site& site, Variants* variants) {
  return std::make_unique<Linear>(site, variants);
}

}  // namespace millrace::kernels::onednn
