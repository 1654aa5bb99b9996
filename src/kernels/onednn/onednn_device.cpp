// Compiles a stage: the factory of this device in the common executor.
#include "kernels/onednn/onednn_device.h"

#include "base/errors.h"
#include "kernels/onednn/onednn_factory.h"
#include "kernels/stage_executable.h"

namespace millrace::kernels {
namespace {

class OnednnDevice : public Device {
 public:
  std::string_view name() const override { return "onednn"; }

  std::unique_ptr<Executable> compile(const StageGraph& stage, StageParameters& parameters,
                                      const CompileOptions& options) override {
    if (parameters.precision() != Precision::fp32) {
      throw InvalidInput("kernels 'onednn' compute in fp32 only; allowed in fp64: auto, reference");
    }
    return make_stage_executable(stage, parameters, options, std::make_unique<onednn::OnednnFactory>(stage, options));
  }
};

}  // namespace

std::unique_ptr<Device> make_onednn_device() { return std::make_unique<OnednnDevice>(); }

}  // namespace millrace::kernels
