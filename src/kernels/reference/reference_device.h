// The reference device: every operator kind in plain loops, fp32 and fp64.
#pragma once

#include <memory>

#include "kernels/device.h"

namespace millrace::kernels {

std::unique_ptr<Device> make_reference_device();

}  // namespace millrace::kernels
