// Chooses the kernel of each operator of a part, and has those of exchanges and of biases that one device adds.
#include "runtime/part_kernels.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/device.h"
#include "runtime/part_conversion.h"
#include "runtime/split_kernels.h"

namespace millrace::runtime {
namespace {

class ExchangeKernel final : public kernels::OpKernel {
 public:
  ExchangeKernel(const PartExchange& exchange, std::int64_t rows, std::int64_t element_bytes, PartGroup& group)
      : forward_(exchange.dims, rows, exchange.from, exchange.to, element_bytes, group),
        backward_(exchange.dims, rows, exchange.gradient_from, exchange.gradient_to, element_bytes, group) {}

  void forward(const kernels::OpCall& call) override { forward_.run(call.inputs[0], call.outputs[0]); }
  void backward_input(const kernels::OpCall& call) override {
    if (call.input_gradients[0] == nullptr) return;
    if (std::exchange(begun_, false)) {
      backward_.end(call.output_gradients[0], call.input_gradients[0]);
    } else {
      backward_.run(call.output_gradients[0], call.input_gradients[0]);
    }
  }

  bool waits_for_others() const override { return backward_.communicates(); }
  void begin_backward_input(const kernels::OpCall& call) override {
    if (call.input_gradients[0] == nullptr) return;
    backward_.begin(const_cast<void*>(call.output_gradients[0]));  // nobody else reads it
    begun_ = true;
  }

 private:
  PartConversion forward_, backward_;
  bool begun_ = false;  // the backward of the micro-batch
};

/// Zeros in place of a parameter that the first device adds.
class WithoutTerm final : public kernels::OpKernel {
 public:
  WithoutTerm(std::unique_ptr<kernels::OpKernel> kernel, std::size_t parameter, std::int64_t bytes)
      : kernel_(std::move(kernel)), parameter_(parameter), zeros_(static_cast<std::size_t>(bytes)) {}

  void forward(const kernels::OpCall& call) override { with_zeros(call, &OpKernel::forward); }
  void backward_input(const kernels::OpCall& call) override { with_zeros(call, &OpKernel::backward_input); }
  void backward_weight(const kernels::OpCall& call) override { with_zeros(call, &OpKernel::backward_weight); }
  bool can_overwrite() const override { return kernel_->can_overwrite(); }
  std::int64_t extra_bytes() const override { return kernel_->extra_bytes(); }
  std::int64_t scratch_bytes() const override { return kernel_->scratch_bytes(); }

 private:
  void with_zeros(kernels::OpCall call, void (OpKernel::*compute)(const kernels::OpCall&)) {
    std::array<const void*, 8> parameters{};
    std::copy(call.parameters.begin(), call.parameters.end(), parameters.begin());
    parameters[parameter_] = zeros_.data();
    call.parameters = std::span(parameters.data(), call.parameters.size());
    (*kernel_.*compute)(call);
  }

  std::unique_ptr<kernels::OpKernel> kernel_;
  std::size_t parameter_;
  std::vector<std::byte> zeros_;
};

}  // namespace

template <class T>
std::unique_ptr<kernels::OpKernel> PartKernels::make_split(const SplitOperator& split,
                                                           const kernels::CompileOptions& options) {
  const SplitSetup setup{split, whole_.op(split.whole), whole_, group_, options};
  if (split.kind == SplitOperator::Kind::table) return make_split_table<T>(setup);
  if (split.kind == SplitOperator::Kind::classes) return make_split_classes<T>(setup);
  return make_split_mask<T>(setup);
}

std::unique_ptr<kernels::OpKernel> PartKernels::make(OpId op, const kernels::CompileOptions& options,
                                                     kernels::KernelFactory& device) {
  const auto exchange = std::lower_bound(parts_.exchanges.begin(), parts_.exchanges.end(), op,
                                         [](const PartExchange& one, OpId other) { return one.op < other; });
  if (exchange != parts_.exchanges.end() && exchange->op == op) {
    const Graph& graph = *parts_.devices.front().graph;
    const bool indices = graph.tensor(graph.op(op).inputs[0]).shape.element == ElementType::index;
    const std::int64_t bytes = indices ? 4 : kernels::real_bytes(precision_);
    return std::make_unique<ExchangeKernel>(*exchange, options.rows, bytes, group_);
  }
  for (const SplitOperator& split : parts_.split) {
    if (split.op != op) continue;
    return precision_ == kernels::Precision::fp64 ? make_split<double>(split, options)
                                                  : make_split<float>(split, options);
  }
  for (const auto& [operator_id, parameter] : parts_.terms) {
    if (operator_id != op || group_.index() == 0) continue;
    const Graph& graph = *parts_.devices[static_cast<std::size_t>(group_.index())].graph;
    const std::int64_t count = graph.tensor(graph.op(op).parameters[parameter]).shape.elements_per_sample();
    return std::make_unique<WithoutTerm>(device.make(op), parameter, count * kernels::real_bytes(precision_));
  }
  return nullptr;
}

}  // namespace millrace::runtime
