// Makes devices of the figures that a graph carries.
#include "planner/carried_cluster.h"

#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace::planner {
namespace {

// `count` devices that share a link with those that are there.
void add_devices(std::vector<cluster::Device>& devices, const char* name, int count, std::optional<Bytes> memory) {
  cluster::Device device;
  device.name = name;
  device.memory = memory;
  device.bandwidth = cluster::kUnlimited;
  devices.insert(devices.end(), static_cast<std::size_t>(count), device);
}

Bytes rounded(double bytes) { return Bytes(std::llround(bytes)); }

}  // namespace

cluster::Cluster carried_cluster(const Graph& graph, const CarriedChanges& changes) {
  std::vector<cluster::Device> devices;
  cluster::Link link{cluster::kUnlimited, Seconds{}};
  const Carried* carried = graph.carried();
  if (const auto* split = carried != nullptr ? std::get_if<SplitModel>(&carried->extra) : nullptr) {
    add_devices(devices, "accelerator", changes.devices.value_or(split->accelerators),
                changes.memory.value_or(rounded(split->memory_bytes)));
    add_devices(devices, "cpu", split->cpus, std::nullopt);
  } else if (const auto* piper = carried != nullptr ? std::get_if<TensorParallelModel>(&carried->extra) : nullptr) {
    add_devices(devices, "device", changes.devices.value_or(piper->devices),
                changes.memory.value_or(rounded(piper->memory_bytes)));
    link.bandwidth = BytesPerSecond(piper->bytes_per_second);
  } else {
    throw InvalidInput(fmt::format(
        "cluster: model: graph '{}' carries no machine; files of dnn-partitioning and Piper do", graph.name()));
  }
  if (changes.bandwidth) link.bandwidth = *changes.bandwidth;
  std::vector<int> node_of(devices.size(), 0);
  return cluster::Cluster(fmt::format("machine of {}", graph.name()), cluster::Kind::described, std::move(devices),
                          std::move(node_of), {cluster::Node{"node 0", link}}, {});
}

}  // namespace millrace::planner
