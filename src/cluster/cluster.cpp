// Which link two devices share.
#include "cluster/cluster.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace::cluster {

namespace {

// Linear in the devices for each kind that there is.
std::vector<int> first_alike(const std::vector<Device>& devices) {
  std::vector<int> first, kinds;
  for (int d = 0; d < static_cast<int>(devices.size()); ++d) {
    const auto found = std::find_if(kinds.begin(), kinds.end(), [&](int kind) {
      return devices[static_cast<std::size_t>(kind)] == devices[static_cast<std::size_t>(d)];
    });
    first.push_back(found == kinds.end() ? d : *found);
    if (first.back() == d) kinds.push_back(d);
  }
  return first;
}

}  // namespace

Cluster::Cluster(std::string name, Kind kind, std::vector<Device> devices, std::vector<int> node_of,
                 std::vector<Node> nodes, Network network, bool emulated)
    : name_(std::move(name)),
      kind_(kind),
      emulated_(emulated),
      devices_(std::move(devices)),
      first_alike_(millrace::cluster::first_alike(devices_)),
      node_of_(std::move(node_of)),
      nodes_(std::move(nodes)),
      network_(std::move(network)) {
  if (devices_.empty()) throw InvalidInput(fmt::format("cluster '{}' has no devices", name_));
  if (node_of_.size() != devices_.size()) {
    throw InvalidInput(
        fmt::format("cluster '{}' has {} devices, but a node for {} of them", name_, devices_.size(), node_of_.size()));
  }
  for (const int node : node_of_) {
    if (node < 0 || node >= static_cast<int>(nodes_.size())) {
      throw InvalidInput(
          fmt::format("cluster '{}' has a device on node {}; it has {} nodes", name_, node, nodes_.size()));
    }
  }
  int inner = 1;
  for (const Tier& tier : network_.tiers) {
    if (tier.nodes <= inner || tier.nodes % inner != 0) {
      throw InvalidInput(fmt::format("cluster '{}' has groups of {} nodes that do not divide into groups of {}", name_,
                                     tier.nodes, inner));
    }
    inner = tier.nodes;
  }
}

Link Cluster::link(int a, int b) const {
  if (a == b) return {kUnlimited, Seconds{}};
  const int node = node_of(a), other = node_of(b);
  if (node == other) return nodes_[static_cast<std::size_t>(node)].link;
  for (const Tier& tier : network_.tiers) {
    if (node / tier.nodes == other / tier.nodes) return tier.link;
  }
  return {network_.link.bandwidth / network_.oversubscription, network_.link.latency};
}

}  // namespace millrace::cluster
