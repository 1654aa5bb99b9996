// Convolution by oneDNN: each pass in the layouts in which it is fast, tensors reordered where they lie otherwise.
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "kernels/onednn/convolution_shape.h"
#include "kernels/onednn/convolution_variants.h"
#include "kernels/onednn/gradient_reorder.h"
#include "kernels/onednn/makers.h"
#include "kernels/onednn/row_loops.h"

namespace millrace::kernels::onednn {
namespace {

/// Implementations that are an order of magnitude slower than reordering to a layout that another one takes.
bool is_slow(const ConvolutionPass& pass) {
  const std::string_view name = pass.implementation;
  return name.find("ref") != std::string_view::npos || name.find("gemm") != std::string_view::npos;
}

/// The pass for tensors that lie as given, or in the nearest layouts for which it is fast.
ConvolutionPass fast_pass(const Engine& engine, Pass pass, const ConvolutionShape& shape, const MemoryDesc& source,
                          const MemoryDesc& destination) {
  const MemoryDesc any_source = any_desc(shape.source);
  const MemoryDesc any_destination = any_desc(shape.destination);
  const std::array<std::pair<const MemoryDesc*, const MemoryDesc*>, 4> wishes{{{&source, &destination},
                                                                               {&source, &any_destination},
                                                                               {&any_source, &destination},
                                                                               {&any_source, &any_destination}}};
  std::optional<ConvolutionPass> found;
  for (const auto& [from, to] : wishes) {
    try {
      found = make_convolution(engine, pass, shape, *from, *to);
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
      continue;
    }
    if (!is_slow(*found)) break;
  }
  if (!found) throw std::runtime_error("oneDNN offers no convolution for this shape");
  return *std::move(found);
}

/// A tensor that a pass may want in another layout than it lies in.
class Port {
 public:
  Port() = default;
  Port(const Engine& engine, const MemoryDesc& from, const MemoryDesc& to, std::int64_t& scratch) {
    if (from == to) return;
    reorder_ = make_reorder(engine, from, to);
    work_ = scratch;
    scratch += aligned(reorder_->scratch);
    place_ = scratch;
    scratch += aligned(static_cast<std::int64_t>(std::max(from.get_size(), to.get_size())));
  }

  /// Where the pass reads: `data` itself or a reordered copy.
  const void* read(const void* data, void* scratch) {
    if (!reorder_) return data;
    run(data, place(scratch), scratch);
    return place(scratch);
  }

  /// Where the pass writes; publish() brings it to `data`.
  void* target(void* data, void* scratch) const { return reorder_ ? place(scratch) : data; }
  void publish(void* data, void* scratch) {
    if (reorder_) run(place(scratch), data, scratch);
  }

 private:
  std::byte* place(void* scratch) const { return static_cast<std::byte*>(scratch) + place_; }

  void run(const void* from, void* to, void* scratch) {
    reorder_->primitive.bind(0, from);
    reorder_->primitive.bind(1, to);
    reorder_->primitive.bind(2, static_cast<std::byte*>(scratch) + work_);
    reorder_->primitive.execute();
  }

  std::optional<Reorder> reorder_;
  std::int64_t work_ = 0;
  std::int64_t place_ = 0;
};

class Conv2d : public OpKernel {
 public:
  Conv2d(const Site& site, const Layouts& layouts, Variants* variants, bool back, ReluShare relu)
      : engine_(site.engine),
        variants_(variants),
        threads_(site.threads),
        shape_(convolution_shape(site.graph, site.op, site.rows)),
        relu_(relu),
        outputs_(layouts.elements(site.op.outputs[0])),
        plain_weights_(plain_desc(shape_.weights)) {
    const MemoryDesc source = layouts.desc(site.op.inputs[0]);
    const MemoryDesc destination = layouts.desc(site.op.outputs[0]);
    make_forward(source, destination);
    if (!site.training) return;
    if (back) make_backward_data(source, destination);
    make_backward_weights(source, destination);
  }

  std::int64_t scratch_bytes() const override { return scratch_; }

  void forward(const OpCall& call) override {
    forward_.bind(0, forward_source_.read(call.inputs[0], call.scratch));
    forward_.bind(1, forward_weights_.read(call.parameters[0], call.scratch));
    forward_.bind(2, forward_destination_.target(call.outputs[0], call.scratch));
    forward_.bind(3, call.scratch);
    if (shape_.bias) forward_.bind(4, call.parameters[1]);
    forward_.execute();
    forward_destination_.publish(call.outputs[0], call.scratch);
  }

  // What ReLU stops is taken out of the gradient where it lies: both halves read it.
  void backward_input(const OpCall& call) override {
    if (relu_ == ReluShare::both) {
      auto* gradient = static_cast<float*>(const_cast<void*>(call.output_gradients[0]));
      stop_below_zero(threads_, output(call), gradient, outputs_);
    }
    if (!call.input_gradients[0]) return;
    backward_data_.bind(0, data_source_.target(call.input_gradients[0], call.scratch));
    backward_data_.bind(1, data_weights_.read(call.parameters[0], call.scratch));
    backward_data_.bind(2, data_destination_.read(call.output_gradients[0], call.scratch));
    backward_data_.bind(3, call.scratch);
    backward_data_.execute();
    data_source_.publish(call.input_gradients[0], call.scratch);
  }

  bool can_overwrite() const override { return true; }

  // oneDNN overwrites the gradients of weights. From scratch they are added to the sums of the step, or brought into
  // the plain layout; those in it are written where they belong if they are the first.
  void backward_weight(const OpCall& call) override {
    std::byte* const scratch = static_cast<std::byte*>(call.scratch);
    const bool direct = call.overwrite && !weights_gradient_;
    void* const gradient = direct ? call.parameter_gradients[0] : scratch + gradient_place_;
    void* const bias_gradient =
        shape_.bias && call.overwrite ? call.parameter_gradients[1] : scratch + bias_gradient_place_;
    backward_weights_.bind(0, weights_source_.read(call.inputs[0], scratch));
    backward_weights_.bind(1, gradient);
    backward_weights_.bind(2, weights_destination_.read(call.output_gradients[0], scratch));
    backward_weights_.bind(3, scratch);
    if (shape_.bias) backward_weights_.bind(4, bias_gradient);
    backward_weights_.execute();
    if (weights_gradient_ && call.overwrite) {
      weights_gradient_->write(gradient, call.parameter_gradients[0], scratch);
    } else if (weights_gradient_) {
      weights_gradient_->add(gradient, call.parameter_gradients[0], scratch);
    } else if (!direct) {
      row_add(parameter_gradient(call, 0), static_cast<const float*>(gradient), element_count(shape_.weights));
    }
    if (shape_.bias && !call.overwrite) {
      row_add(parameter_gradient(call, 1), static_cast<const float*>(bias_gradient), shape_.weights[0]);
    }
  }

 private:
  static std::int64_t bytes(const MemoryDesc& desc) { return static_cast<std::int64_t>(desc.get_size()); }

  ConvolutionPass pass_for(Pass pass, const MemoryDesc& source, const MemoryDesc& destination) const {
    return choose_convolution(engine_, pass, shape_, fast_pass(engine_, pass, shape_, source, destination), variants_);
  }

  void make_forward(const MemoryDesc& source, const MemoryDesc& destination) {
    shape_.relu = relu_ != ReluShare::none;
    const ConvolutionPass pass = pass_for(Pass::forward, source, destination);
    std::int64_t scratch = aligned(bytes(pass.scratchpad));
    forward_source_ = Port(engine_, source, pass.source, scratch);
    forward_weights_ = Port(engine_, plain_weights_, pass.weights, scratch);
    forward_destination_ = Port(engine_, pass.destination, destination, scratch);
    forward_ = Primitive(engine_, pass.primitive,
                         arguments(pass, DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS));
    scratch_ = std::max(scratch_, scratch);
  }

  void make_backward_data(const MemoryDesc& source, const MemoryDesc& destination) {
    const ConvolutionPass pass = pass_for(Pass::backward_data, source, destination);
    std::int64_t scratch = aligned(bytes(pass.scratchpad));
    data_source_ = Port(engine_, pass.source, source, scratch);
    data_weights_ = Port(engine_, plain_weights_, pass.weights, scratch);
    data_destination_ = Port(engine_, destination, pass.destination, scratch);
    backward_data_ = Primitive(engine_, pass.primitive,
                               {{DNNL_ARG_DIFF_SRC, pass.source},
                                {DNNL_ARG_WEIGHTS, pass.weights},
                                {DNNL_ARG_DIFF_DST, pass.destination},
                                {DNNL_ARG_SCRATCHPAD, pass.scratchpad}});
    scratch_ = std::max(scratch_, scratch);
  }

  void make_backward_weights(const MemoryDesc& source, const MemoryDesc& destination) {
    const ConvolutionPass pass = pass_for(Pass::backward_weights, source, destination);
    std::int64_t work = bytes(pass.scratchpad);
    if (pass.weights != plain_weights_) {
      weights_gradient_.emplace(engine_, threads_, pass.weights);
      work = std::max(work, weights_gradient_->scratch_bytes());
    }
    std::int64_t scratch = aligned(work);
    weights_source_ = Port(engine_, source, pass.source, scratch);
    weights_destination_ = Port(engine_, destination, pass.destination, scratch);
    gradient_place_ = scratch;
    scratch += aligned(bytes(pass.weights));
    bias_gradient_place_ = scratch;
    if (shape_.bias) scratch += aligned(bytes(pass.bias));
    backward_weights_ =
        Primitive(engine_, pass.primitive,
                  arguments(pass, DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_BIAS));
    scratch_ = std::max(scratch_, scratch);
  }

  Primitive::Arguments arguments(const ConvolutionPass& pass, int source, int weights, int destination,
                                 int bias) const {
    Primitive::Arguments list{{source, pass.source},
                              {weights, pass.weights},
                              {destination, pass.destination},
                              {DNNL_ARG_SCRATCHPAD, pass.scratchpad}};
    if (shape_.bias) list.emplace_back(bias, pass.bias);
    return list;
  }

  const Engine& engine_;
  Variants* variants_;
  int threads_;
  ConvolutionShape shape_;
  ReluShare relu_;
  std::int64_t outputs_;  // elements
  MemoryDesc plain_weights_;
  std::int64_t scratch_ = 0;

  Primitive forward_;
  // Weights are brought into the pass's layout for each call: with two images or more that costs at most a few
  // hundredths of its time, and a copy of them all would take as much memory as the weights.
  Port forward_source_, forward_weights_, forward_destination_;

  Primitive backward_data_;
  Port data_source_, data_weights_, data_destination_;

  Primitive backward_weights_;
  Port weights_source_, weights_destination_;
  std::optional<GradientReorder> weights_gradient_;
  std::int64_t gradient_place_ = 0;
  std::int64_t bias_gradient_place_ = 0;
};

}  // namespace

std::unique_ptr<OpKernel> make_conv2d(const Site& site, const Layouts& layouts, Variants* variants, bool back,
                                      ReluShare relu) {
  return std::make_unique<Conv2d>(site, layouts, variants, back, relu);
}

}  // namespace millrace::kernels::onednn
