// y = x · Wᵀ + b where x and y lie in bf16: those of its passes that are faster so.
#include <algorithm>
#include <utility>

#include "kernels/bf16/loops.h"
#include "kernels/factored_products.h"
#include "kernels/onednn/bf16_product.h"
#include "kernels/onednn/makers.h"
#include "kernels/onednn/row_loops.h"

namespace millrace::kernels::onednn {
namespace {

class Bf16Linear : public OpKernel {
 public:
  Bf16Linear(const Site& site, Variants* variants, bool back)
      : threads_(site.threads),
        bias_(site.op.attributes.boolean("bias")),
        inputs_(site.input_dims().back()),
        outputs_(site.output_dims().back()),
        rows_(site.input_elements() / inputs_) {
    const LinearShape shape{rows_, inputs_, outputs_, bias_};
    const auto choose = [&](Pass pass) { return choose_bf16_product(site.engine, pass, shape, threads_, variants); };
    forward_ = choose(Pass::forward);
    if (!site.training) return;
    if (back) backward_input_ = choose(Pass::backward_data);
    backward_weight_ = choose(Pass::backward_weights);
  }

  bool does(Pass pass) const {
    return static_cast<bool>(pass == Pass::forward         ? forward_
                             : pass == Pass::backward_data ? backward_input_
                                                           : backward_weight_);
  }

  std::int64_t scratch_bytes() const override {
    return std::max({forward_.scratch_bytes(), backward_input_.scratch_bytes(), backward_weight_.scratch_bytes()});
  }

  void forward(const OpCall& call) override {
    forward_.run(call.inputs[0], call.parameters[0], call.outputs[0], bias_ ? parameter(call, 1) : nullptr,
                 call.scratch);
  }

  void backward_input(const OpCall& call) override {
    if (!call.input_gradients[0]) return;
    backward_input_.run(call.output_gradients[0], call.parameters[0], call.input_gradients[0], nullptr, call.scratch);
  }

  void backward_weight(const OpCall& call) override {
    if (call.factors != nullptr) {
      keep_factors(static_cast<const Bf16*>(call.inputs[0]), static_cast<const Bf16*>(call.output_gradients[0]),
                   {rows_, inputs_, outputs_}, rows_, static_cast<float*>(call.factors), widen);
    } else {
      if (call.overwrite) std::fill_n(parameter_gradient(call, 0), inputs_ * outputs_, 0.0F);
      backward_weight_.run(call.output_gradients[0], call.inputs[0], call.parameter_gradients[0], nullptr,
                           call.scratch);
    }
    if (!bias_) return;
    if (call.overwrite) std::fill_n(parameter_gradient(call, 1), outputs_, 0.0F);
    add_column_sums(threads_, static_cast<const Bf16*>(call.output_gradients[0]), rows_, outputs_,
                    parameter_gradient(call, 1));
  }

 private:
  int threads_;
  bool bias_;
  std::int64_t inputs_, outputs_, rows_;
  Bf16Product forward_, backward_input_, backward_weight_;
};

}  // namespace

Bf16Kernel make_bf16_linear(const Site& site, Variants* variants, bool back) {
  auto kernel = std::make_unique<Bf16Linear>(site, variants, back);
  const bool forward = kernel->does(Pass::forward), input = kernel->does(Pass::backward_data),
             weight = kernel->does(Pass::backward_weights);
  if (!forward && !input && !weight) return {};
  return {std::move(kernel), forward, input || !back, weight};
}

}  // namespace millrace::kernels::onednn
