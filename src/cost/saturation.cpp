// Reads the classes from a device's figures.
#include "cost/saturation.h"

namespace millrace::cost {

DeviceRates device_rates(const cluster::Device& device, std::string_view precision) {
  const double peak = device.peak(precision).value() * device.speed;
  const double bandwidth = device.bandwidth.value() * device.speed;
  const auto of = [&](std::string_view kind, double limit) {
    return Saturation{limit * device.reached(kind), device.ramp_of(kind)};
  };
  return {of("matmul", peak), of("memory", bandwidth), of("attention", bandwidth), of("fused_attention", peak)};
}

}  // namespace millrace::cost
