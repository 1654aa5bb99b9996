// Times of large operators on one device: what it reaches of its peak grows with their size.
#pragma once

#include <string_view>

#include "base/units.h"
#include "cluster/device.h"

namespace millrace::cost {

/// Two constants a class of operators (Hockney's r∞ and n½, Parallel Computing 17, 1991): the part of the peak that a
/// very large operator reaches, and the time that one without work takes. A size x then reaches
/// efficiency · x / (x + half), where half = efficiency · peak · ramp.
struct Saturation {
  double rate = 0;  ///< work per second of a very large operator
  Seconds ramp{};

  Seconds time(double work) const { return ramp + Seconds(work / rate); }
  double half() const { return rate * ramp.value(); }  ///< the size that reaches half of `rate`
};

/// The classes of one device in one precision. Figures come from `efficiency` and `ramp` of the cluster file.
struct DeviceRates {
  Saturation matmul;     ///< of floating-point operations, against the peak
  Saturation memory;     ///< of bytes read and written, against the memory's bandwidth
  Saturation attention;  ///< of bytes of attention scores: products, softmax and dropout as operators of their own
  Saturation fused_attention;  ///< of operations, where scores never leave the chip
};

/// \throws InvalidInput  when the device has no peak for `precision`.
DeviceRates device_rates(const cluster::Device& device, std::string_view precision);

}  // namespace millrace::cost
