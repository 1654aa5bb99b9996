// How fast this rank computes, in a fraction of a second.
#pragma once

#include "base/units.h"
#include "kernels/device.h"

namespace millrace::probe {

/// Time of forward and backward of a small network of dense layers, the same on all ranks: the lower quartile of what
/// fits into `time`, since what disturbs a measurement makes it longer. Ranks that are compared measure side by side.
Seconds measure_dense_network(kernels::Device& device, kernels::Precision precision, Seconds time);

}  // namespace millrace::probe
