// Compares each device with the kinds known so far; merges by speed where there are too many.
#include "plan/device_kinds.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace millrace::plan {
namespace {

template <class Same>
std::vector<DeviceKind> gather(const std::vector<DeviceKind>& from, const Same& same) {
  std::vector<DeviceKind> kinds;
  for (const DeviceKind& next : from) {
    const auto found = std::find_if(kinds.begin(), kinds.end(),
                                    [&](const DeviceKind& kind) { return same(kind.device, next.device); });
    if (found == kinds.end()) {
      kinds.push_back(next);
    } else {
      found->count += next.count;
    }
  }
  return kinds;
}

cluster::Device without_speed(cluster::Device device) {
  device.name.clear();
  device.speed = 1.0;
  return device;
}

}  // namespace

std::vector<DeviceKind> device_kinds(const cluster::Cluster& cluster, std::size_t most) {
  std::vector<DeviceKind> each;
  for (int device = 0; device < cluster.size(); ++device) each.push_back({device, 1});
  const auto equal = [&](int a, int b) { return cluster.device(a) == cluster.device(b); };
  std::vector<DeviceKind> kinds = gather(each, equal);
  if (kinds.size() <= most) return kinds;

  double fastest = 0, slowest = INFINITY;
  for (const DeviceKind& kind : kinds) {
    fastest = std::max(fastest, cluster.device(kind.device).speed);
    slowest = std::min(slowest, cluster.device(kind.device).speed);
  }
  const double width = std::log(fastest / slowest) / static_cast<double>(most);
  std::map<int, cluster::Device> makes;
  for (const DeviceKind& kind : kinds) makes[kind.device] = without_speed(cluster.device(kind.device));
  const auto step = [&](int device) {
    return width > 0 ? std::floor(std::log(fastest / cluster.device(device).speed) / width) : 0.0;
  };
  std::stable_sort(kinds.begin(), kinds.end(), [&](const DeviceKind& a, const DeviceKind& b) {
    return cluster.device(a.device).speed > cluster.device(b.device).speed;
  });
  return gather(kinds, [&](int a, int b) { return step(a) == step(b) && makes[a] == makes[b]; });
}

std::vector<int> first_alike(const cluster::Cluster& cluster) {
  const auto& devices = cluster.devices();
  std::vector<int> first;
  for (const cluster::Device& device : devices) {
    first.push_back(static_cast<int>(std::find(devices.begin(), devices.end(), device) - devices.begin()));
  }
  return first;
}

}  // namespace millrace::plan
