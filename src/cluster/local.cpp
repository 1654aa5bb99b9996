// Makes the devices of a job from its ranks, hosts and threads.
#include "cluster/local.h"

#include <algorithm>
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

}  // namespace millrace::cluster
