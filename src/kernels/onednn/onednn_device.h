// The CPU device for training in single precision: oneDNN and vectorised loops on OpenMP threads.
#pragma once

#include <memory>

#include "kernels/device.h"

namespace millrace::kernels {

/// Computes in fp32 with as many threads as OpenMP gives when a stage is compiled. Convolutions run in oneDNN's layouts
/// from edge to edge; the copies of their weights in these layouts are counted in ExecutableBytes::workspace.
std::unique_ptr<Device> make_onednn_device();

}  // namespace millrace::kernels
