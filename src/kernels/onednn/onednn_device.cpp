// Compiles a stage: the factory of this device in the common executor.
#include "kernels/onednn/onednn_device.h"

#include <utility>

#include "base/errors.h"
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
    if (parameters.precision() != Precision::fp32) {
      throw InvalidInput("kernels 'onednn' compute in fp32 only; allowed in fp64: auto, reference");
    }
    return make_stage_executable(stage, parameters, options,
                                 std::make_unique<onednn::OnednnFactory>(stage, options, variants_.get()));
  }

 private:
  std::shared_ptr<Variants> variants_;
};

}  // namespace

std::unique_ptr<Device> make_onednn_device(std::shared_ptr<Variants> variants) {
  return std::make_unique<OnednnDevice>(std::move(variants));
}

std::string onednn_name() { return onednn::library_name(); }

}  // namespace millrace::kernels
