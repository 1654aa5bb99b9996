// Makes the devices of a job from its ranks, hosts and threads.
#include "cluster/local.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace::cluster {
namespace {

Device core_set(int threads, double speed) {
  Device device;
  device.name = threads == 1 ? "1 core" : fmt::format("{} cores", threads);
  device.flops = {
      {"fp32", kCoreFlopsFp32 * threads}, {"fp64", kCoreFlopsFp64 * threads}, {"bf16", kCoreFlopsBf16 * threads}};
  device.bandwidth = kCoreBandwidth * threads;
  device.speed = speed;
  device.launch = kOperatorLaunch;
  return device;
}

}  // namespace

Cluster local_cluster(int ranks, std::span<const std::string> hosts, int threads, double speed) {
  if (ranks < 1) throw InvalidInput(fmt::format("a job has at least 1 rank, not {}", ranks));
  if (threads < 1) throw InvalidInput(fmt::format("a rank has at least 1 thread, not {}", threads));
  if (!(speed > 0)) throw InvalidInput(fmt::format("a device's speed is above 0, not {}", speed));
  if (!hosts.empty() && hosts.size() != static_cast<std::size_t>(ranks)) {
    throw InvalidInput(fmt::format("{} ranks, but {} host names", ranks, hosts.size()));
  }
  std::vector<Node> nodes;
  std::vector<int> node_of;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string host = hosts.empty() ? "localhost" : hosts[static_cast<std::size_t>(rank)];
    const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const Node& node) { return node.name == host; });
    node_of.push_back(static_cast<int>(found - nodes.begin()));
    if (found == nodes.end()) nodes.push_back(Node{host, kSharedMemory});
  }
  std::vector<Device> devices(static_cast<std::size_t>(ranks), core_set(threads, speed));
  return Cluster("local", Kind::local, std::move(devices), std::move(node_of), std::move(nodes), Network{kEthernet});
}

Cluster with_measurements(const Cluster& local, std::span<const double> speeds, std::optional<Link> within,
                          std::optional<Link> between) {
  std::vector<Device> devices = local.devices();
  std::vector<int> node_of;
  for (int device = 0; device < local.size(); ++device) {
    devices[static_cast<std::size_t>(device)].speed = speeds[static_cast<std::size_t>(device)];
    node_of.push_back(local.node_of(device));
  }
  std::vector<Node> nodes = local.nodes();
  for (Node& node : nodes) node.link = within.value_or(node.link);
  Network network = local.network();
  network.link = between.value_or(network.link);
  return Cluster(local.name(), local.kind(), std::move(devices), std::move(node_of), std::move(nodes), network);
}

std::vector<double> with_equal_speeds(std::span<const double> speeds, double tolerance) {
  std::vector<std::size_t> order(speeds.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return speeds[a] > speeds[b]; });
  std::vector<double> equal(speeds.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first;
    while (end < order.size() && speeds[order[end]] >= speeds[order[first]] * (1 - tolerance)) ++end;
    const double middle = speeds[order[first + (end - first) / 2]];
    for (; first < end; ++first) equal[order[first]] = middle;
  }
  return equal;
}

}  // namespace millrace::cluster
