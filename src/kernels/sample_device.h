// A device that computes sample by sample, so that no result depends on which samples share a micro-batch, a stage or
// a rank (train.reproducible: any).
#pragma once

#include <map>
#include <memory>

#include "kernels/device.h"
#include "kernels/gradient_tree.h"

namespace millrace::kernels {

/// Compiles stages of another device for one row and gives every sample a slot of its own: each kernel call has the
/// same shape and the same alignment, in whatever micro-batch the sample is. A sample's parameter gradients start from
/// zero and go into the stage's tree; the StageParameters' own gradients are scratch.
class SampleDevice final : public Device {
 public:
  explicit SampleDevice(std::unique_ptr<Device> device) : device_(std::move(device)) {}

  std::string_view name() const override { return device_->name(); }
  void compiled() override { device_->compiled(); }
  std::unique_ptr<Executable> compile(const StageGraph& stage, StageParameters& parameters,
                                      const CompileOptions& options) override;

  /// The tree of a stage, shared by all that was compiled for it; it lives as long as the device.
  GradientTree& tree(const StageParameters& parameters);

 private:
  std::unique_ptr<Device> device_;
  std::map<const StageParameters*, GradientTree> trees_;
};

}  // namespace millrace::kernels
