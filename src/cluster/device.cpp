// Look-ups in a device's figures.
#include "cluster/device.h"

#include <vector>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/text.h"

namespace millrace::cluster {

FlopsPerSecond Device::peak(std::string_view precision) const {
  const auto found = flops.find(precision);
  if (found != flops.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& item : flops) known.push_back(item.first);
  throw InvalidInput(
      fmt::format("device '{}' has no flops for precision {}; it has: {}", name, precision, join(known)));
}

double Device::reached(std::string_view kind) const {
  const auto found = efficiency.find(kind);
  return found == efficiency.end() ? 1.0 : found->second;
}

Seconds Device::ramp_of(std::string_view kind) const {
  const auto found = ramp.find(kind);
  return found == ramp.end() ? Seconds{} : found->second;
}

}  // namespace millrace::cluster
