// The closed forms, and which of them a group of devices can use.
#include "cost/collectives.h"

#include <algorithm>
#include <bit>
#include <map>

namespace millrace::cost {
namespace {

// The worse of two links in each figure: what a ring through both can count on.
cluster::Link slower(cluster::Link a, cluster::Link b) {
  return {std::min(a.bandwidth, b.bandwidth), std::max(a.latency, b.latency)};
}

}  // namespace

Seconds ring_all_reduce(Bytes amount, int devices, cluster::Link link) {
  const double steps = 2.0 * (devices - 1);
  return steps / devices * (amount / link.bandwidth) + steps * link.latency;
}

Seconds tree_all_reduce(Bytes amount, int devices, cluster::Link link) {
  const auto levels = static_cast<double>(std::bit_width(static_cast<unsigned>(devices - 1)));
  return 2.0 * (amount / link.bandwidth) + 2.0 * levels * link.latency;
}

Seconds hierarchical_all_reduce(Bytes amount, int nodes, int per_node, cluster::Link inner, cluster::Link port) {
  return ring_all_reduce(amount, per_node, inner) + ring_all_reduce(amount, nodes, port);
}

Seconds cheapest_all_reduce(Bytes amount, std::span<const int> devices, const cluster::Cluster& cluster) {
  if (devices.size() < 2) return Seconds{};
  std::map<int, int> on_node;
  for (const int device : devices) ++on_node[cluster.node_of(device)];

  const int first = devices.front();
  cluster::Link inner = cluster.link(first, first);  // unlimited: the neutral element of slower()
  for (const auto& [node, count] : on_node) {
    if (count > 1) inner = slower(inner, cluster.nodes()[static_cast<std::size_t>(node)].link);
  }
  cluster::Link all = inner;
  cluster::Link port = cluster.link(first, first);
  for (const int device : devices) {
    if (cluster.node_of(device) != cluster.node_of(first)) port = slower(port, cluster.link(first, device));
  }
  all = slower(all, port);

  const int count = static_cast<int>(devices.size());
  Seconds best = std::min(ring_all_reduce(amount, count, all), tree_all_reduce(amount, count, all));
  const int per_node = on_node.begin()->second;
  const bool even =
      std::all_of(on_node.begin(), on_node.end(), [&](const auto& item) { return item.second == per_node; });
  if (even && on_node.size() > 1 && per_node > 1) {
    best = std::min(best, hierarchical_all_reduce(amount, static_cast<int>(on_node.size()), per_node, inner, port));
  }
  return best;
}

}  // namespace millrace::cost
