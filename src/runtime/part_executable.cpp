// Translates the numbers of tensors and operators.
#include "runtime/part_executable.h"

#include "runtime/part_kernels.h"

namespace millrace::runtime {
namespace {

class PartExecutable final : public kernels::Executable, private kernels::BackwardObserver {
 public:
  PartExecutable(const StageParts& parts, const Graph& whole, PartGroup& group, kernels::Device& device,
                 kernels::StageParameters& parameters, kernels::CompileOptions options)
      : parts_(parts), kernels_(parts, whole, group, parameters.precision()) {
    options.source = &kernels_;
    options.recompute = parts.recomputed(options.recompute);
    part_ = device.compile(parts.devices[static_cast<std::size_t>(group.index())].stage, parameters, options);
  }

  std::int64_t rows() const override { return part_->rows(); }
  kernels::ExecutableBytes bytes() const override { return part_->bytes(); }
  void* input(int slot, TensorId tensor) override { return part_->input(slot, of(tensor)); }
  const void* output(int slot, TensorId tensor) override { return part_->output(slot, of(tensor)); }
  void* output_gradient(int slot, TensorId tensor) override { return part_->output_gradient(slot, of(tensor)); }
  const void* input_gradient(int slot, TensorId tensor) override { return part_->input_gradient(slot, of(tensor)); }
  void forward(int slot, const kernels::BatchContext& context) override { part_->forward(slot, context); }
  void backward(int slot) override { part_->backward(slot); }
  void backward_input(int slot) override { part_->backward_input(slot); }
  void backward_weight(int slot) override { part_->backward_weight(slot); }
  // Parts of tensor-parallel stages are not deferred (program/deferred_weights.h).
  void backward_weight_of(int slot, std::span<const OpId>) override { part_->backward_weight(slot); }
  void recompute(int slot) override { part_->recompute(slot); }

  void observe(kernels::BackwardObserver* observer) override {
    observer_ = observer;
    part_->observe(observer == nullptr ? nullptr : this);
  }

 private:
  TensorId of(TensorId whole) const { return parts_.part_of.at(whole); }

  void done(OpId op) override { observer_->done(parts_.whole_op[static_cast<std::size_t>(op)]); }

  const StageParts& parts_;
  PartKernels kernels_;
  std::unique_ptr<kernels::Executable> part_;
  kernels::BackwardObserver* observer_ = nullptr;
};

}  // namespace

std::unique_ptr<kernels::Executable> compile_part(const StageParts& parts, const Graph& whole, PartGroup& group,
                                                  kernels::Device& device, kernels::StageParameters& parameters,
                                                  kernels::CompileOptions options) {
  return std::make_unique<PartExecutable>(parts, whole, group, device, parameters, std::move(options));
}

}  // namespace millrace::runtime
