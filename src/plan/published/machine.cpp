// Reads devices, nodes and links of the cluster, and refuses what the formulas cannot say.
#include "plan/published/machine.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace::plan {
namespace {

double network_bandwidth(const cluster::Cluster& cluster) {
  return cluster.network().link.bandwidth.value() / cluster.network().oversubscription;
}

}  // namespace

EqualDevices equal_devices(const Problem& problem) {
  EqualDevices all{.count = problem.cluster->size(), .speed = problem.cluster->device(0).speed, .memory_bytes = {}};
  for (int device = 0; device < all.count; ++device) {
    const double speed = problem.cluster->device(device).speed;
    if (speed != all.speed) {
      throw InvalidInput(
          fmt::format("objective {}: device {} has speed {}, device 0 {}; the published formula knows "
                      "devices of one speed",
                      name(problem.objective), device, speed, all.speed));
    }
    if (const auto memory = problem.memory_of(device)) {
      const auto bytes = static_cast<double>(memory->value());
      all.memory_bytes = all.memory_bytes ? std::min(*all.memory_bytes, bytes) : bytes;
    }
  }
  return all;
}

std::vector<Level> machine_levels(const Problem& problem) {
  const cluster::Cluster& cluster = *problem.cluster;
  if (!cluster.network().tiers.empty()) {
    throw InvalidInput(
        fmt::format("objective {}: cluster '{}' has {} levels of links; the formula is offered for one or "
                    "two",
                    name(problem.objective), cluster.name(), 2 + cluster.network().tiers.size()));
  }
  std::vector<int> devices(cluster.nodes().size(), 0);
  for (int device = 0; device < cluster.size(); ++device) ++devices[static_cast<std::size_t>(cluster.node_of(device))];
  for (std::size_t node = 1; node < devices.size(); ++node) {
    if (devices[node] == devices[0] && cluster.nodes()[node].link == cluster.nodes()[0].link) continue;
    throw InvalidInput(
        fmt::format("objective {}: nodes '{}' and '{}' differ in devices or link; the published formula "
                    "knows equal nodes",
                    name(problem.objective), cluster.nodes()[0].name, cluster.nodes()[node].name));
  }
  const int nodes = static_cast<int>(devices.size());
  const double inner = cluster.nodes()[0].link.bandwidth.value();
  if (nodes == 1) return {{devices[0], inner, 1}};
  if (devices[0] == 1) return {{nodes, network_bandwidth(cluster), 1}};
  return {{devices[0], inner, 1}, {nodes, network_bandwidth(cluster), devices[0]}};
}

double slowest_link(const Problem& problem) {
  const cluster::Cluster& cluster = *problem.cluster;
  double slowest = cluster.nodes().size() > 1 ? network_bandwidth(cluster) : cluster.nodes()[0].link.bandwidth.value();
  for (const cluster::Tier& tier : cluster.network().tiers) slowest = std::min(slowest, tier.link.bandwidth.value());
  for (const cluster::Node& node : cluster.nodes()) slowest = std::min(slowest, node.link.bandwidth.value());
  return slowest;
}

}  // namespace millrace::plan
