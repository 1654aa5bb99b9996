// The CPU device for training in fp32 and bf16: oneDNN and vectorised loops on OpenMP threads.
#pragma once

#include <memory>
#include <string>

#include "kernels/device.h"
#include "kernels/variants.h"

namespace millrace::kernels {

/// Computes in fp32 with as many threads as OpenMP gives when a stage is compiled. Convolutions run in oneDNN's layouts
/// from edge to edge; the copies of their weights in these layouts are counted in ExecutableBytes::workspace.
/// `variants`: where stages find implementations that suit their shapes better than the standard ones; null: nowhere.
std::unique_ptr<Device> make_onednn_device(std::shared_ptr<Variants> variants = nullptr);
/// The processor's library and vector instructions, which choices between variants depend on.
std::string onednn_name();

}  // namespace millrace::kernels
