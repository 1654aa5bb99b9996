// The stage executor with the reference kernels and plain layouts.
#include "kernels/reference/reference_device.h"

#include "kernels/bf16/bf16_factory.h"
#include "kernels/kernel_factory.h"
#include "kernels/reference/reference_kernels.h"
#include "kernels/reference/sums.h"
#include "kernels/stage_executable.h"

namespace millrace::kernels {
namespace {

/// All tensors in plain row-major layout.
class ReferenceFactory : public KernelFactory {
 public:
  /// `precision`: fp32 or fp64.
  ReferenceFactory(const Graph& graph, Precision precision, const CompileOptions& options)
      : graph_(graph), precision_(precision), options_(options) {}

  std::unique_ptr<OpKernel> make(OpId op) override {
    return make_reference_kernel(graph_, op, options_.rows, precision_, options_.training, options_.seed);
  }

  std::int64_t tensor_bytes(TensorId tensor) const override {
    const ElementType type = graph_.tensor(tensor).shape.element;
    return elements(tensor) * (type == ElementType::index ? kIndexBytes : real_bytes(precision_));
  }

  void add(TensorId tensor, void* destination, const void* source) const override {
    if (precision_ == Precision::fp64) {
      reference::add(static_cast<double*>(destination), static_cast<const double*>(source), elements(tensor));
    } else {
      reference::add(static_cast<float*>(destination), static_cast<const float*>(source), elements(tensor));
    }
  }

 private:
  std::int64_t elements(TensorId tensor) const {
    return options_.rows * graph_.tensor(tensor).shape.elements_per_sample();
  }

  const Graph& graph_;
  Precision precision_;
  CompileOptions options_;
};

class ReferenceDevice : public Device {
 public:
  std::string_view name() const override { return "reference"; }

  std::unique_ptr<Executable> compile(const StageGraph& stage, StageParameters& parameters,
                                      const CompileOptions& options) override {
    const bool bf16 = parameters.precision() == Precision::bf16;
    std::unique_ptr<KernelFactory> factory =
        std::make_unique<ReferenceFactory>(*stage.graph, bf16 ? Precision::fp32 : parameters.precision(), options);
    if (bf16) factory = make_bf16_factory(*stage.graph, std::move(factory), 1);
    return make_stage_executable(stage, parameters, options, std::move(factory));
  }
};

}  // namespace

std::unique_ptr<Device> make_reference_device() { return std::make_unique<ReferenceDevice>(); }

}  // namespace millrace::kernels
