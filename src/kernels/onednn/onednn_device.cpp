// Compiles a stage: the factory of this device, for bf16 with copies around it, in the common executor.
#include "kernels/onednn/onednn_device.h"

#include <utility>

#include <omp.h>

#include "base/errors.h"
#include "kernels/bf16/bf16_factory.h"
#include "kernels/onednn/onednn_factory.h"
#include "kernels/stage_executable.h"

namespace millrace::kernels {
namespace {

class OnednnDevice : public Device {
 public:
  explicit OnednnDevice(std::shared_ptr<Variants> variants) : variants_(std::move(variants)) {}

  std::string_view name() const override { return "onednn"; }

  std::unique_ptr<Executable> compile(const StageGraph& stage, StageParameters& parameters,
                                      const CompileOptions& options) override {
    if (parameters.precision() == Precision::fp64) {
      throw InvalidInput("kernels 'onednn' compute in fp32 and bf16 only; allowed in fp64: auto, reference");
    }
    const bool copies = parameters.precision() == Precision::bf16;
    std::unique_ptr<KernelFactory> factory =
        std::make_unique<onednn::OnednnFactory>(stage, options, variants_.get(), copies);
    if (copies) {
      factory = make_bf16_factory(*stage.graph, std::move(factory), omp_get_max_threads());
    }
    return make_stage_executable(stage, parameters, options, std::move(factory));
  }

  void compiled() override { onednn::forget_unused_primitives(); }

 private:
  std::shared_ptr<Variants> variants_;
};

}  // namespace

std::unique_ptr<Device> make_onednn_device(std::shared_ptr<Variants> variants) {
  return std::make_unique<OnednnDevice>(std::move(variants));
}

std::string onednn_name() { return onednn::library_name(); }

}  // namespace millrace::kernels
