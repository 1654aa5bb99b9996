// Max and average pooling by oneDNN, in the layout of the images.
#include <algorithm>

#include "kernels/onednn/makers.h"
#include "kernels/onednn/row_loops.h"

namespace millrace::kernels::onednn {
namespace {

class Pool : public OpKernel {
 public:
  Pool(const Site& site, bool of_relu) : threads_(site.threads), outputs_(site.output_elements()), of_relu_(of_relu) {
    const auto desc = [&](const Dims& d) {
      const memory::dims dims{site.rows, d[0], d[1], d[2]};
      return site.block ? blocked_desc(dims, site.block) : plain_desc(dims);
    };
    const MemoryDesc source = desc(site.input_dims());
    const MemoryDesc destination = desc(site.output_dims());
    const Attributes& attributes = site.op.attributes;
    const Pooling pooling =
        make_pooling(site.engine, site.op.schema->name == "max_pool", site.training, source, destination,
                     attributes.integers("kernel"), attributes.integers("stride"), attributes.integers("padding"));
    workspace_ = static_cast<std::int64_t>(pooling.workspace.get_size());
    scratch_ = static_cast<std::int64_t>(
        std::max(pooling.forward_scratchpad.get_size(), pooling.backward_scratchpad.get_size()));
    Primitive::Arguments arguments{
        {DNNL_ARG_SRC, source}, {DNNL_ARG_DST, destination}, {DNNL_ARG_SCRATCHPAD, pooling.forward_scratchpad}};
    if (workspace_ > 0) arguments.emplace_back(DNNL_ARG_WORKSPACE, pooling.workspace);
    forward_ = Primitive(site.engine, pooling.forward, arguments);
    if (!site.training) return;
    arguments = {{DNNL_ARG_DIFF_SRC, source},
                 {DNNL_ARG_DIFF_DST, destination},
                 {DNNL_ARG_SCRATCHPAD, pooling.backward_scratchpad}};
    if (workspace_ > 0) arguments.emplace_back(DNNL_ARG_WORKSPACE, pooling.workspace);
    backward_ = Primitive(site.engine, pooling.backward, arguments);
  }

  /// Where each maximum came from.
  std::int64_t extra_bytes() const override { return workspace_; }
  std::int64_t scratch_bytes() const override { return scratch_; }

  void forward(const OpCall& call) override { run(forward_, call.inputs[0], call.outputs[0], call); }

  // A window whose maximum is zero passed nothing on: ReLU stopped all of it.
  void backward_input(const OpCall& call) override {
    if (of_relu_) {
      auto* gradient = static_cast<float*>(const_cast<void*>(call.output_gradients[0]));
      stop_below_zero(threads_, output(call), gradient, outputs_);
    }
    if (call.input_gradients[0]) run(backward_, call.input_gradients[0], call.output_gradients[0], call);
  }

 private:
  void run(Primitive& primitive, const void* source, const void* destination, const OpCall& call) {
    primitive.bind(0, source);
    primitive.bind(1, destination);
    primitive.bind(2, call.scratch);
    if (workspace_ > 0) primitive.bind(3, call.extra);
    primitive.execute();
  }

  int threads_;
  std::int64_t outputs_;  // elements
  bool of_relu_;
  std::int64_t workspace_ = 0;
  std::int64_t scratch_ = 0;
  Primitive forward_, backward_;
};

}  // namespace

std::unique_ptr<OpKernel> make_pool(const Site& site) { return std::make_unique<Pool>(site, false); }

std::unique_ptr<OpKernel> make_max_pool_of_relu(const Site& site) { return std::make_unique<Pool>(site, true); }

}  // namespace millrace::kernels::onednn
