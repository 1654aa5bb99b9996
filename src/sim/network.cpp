// Ports are numbered: devices, then nodes, then uplinks; two directions each.
#include "sim/network.h"

#include <algorithm>
#include <map>

namespace millrace::sim {

Network::Network(const cluster::Cluster& cluster, const cost::CostModel& cost, Contention contention, bool half_duplex)
    : cluster_(&cluster),
      cost_(&cost),
      contention_(contention),
      half_duplex_(half_duplex),
      devices_on_(cluster.nodes().size()) {
  for (int device = 0; device < cluster.size(); ++device) {
    ++devices_on_[static_cast<std::size_t>(cluster.node_of(device))];
  }
}

Seconds Network::transfer(Bytes bytes, int from, int to) const {
  const Seconds alone = cost_->transfer_time(bytes, from, to);
  const int node = cluster_->node_of(from), other = cluster_->node_of(to);
  if (contention_ == Contention::none || node == other) return alone;
  const Seconds latency = cost_->transfer_time(Bytes(0), from, to);
  double factor = 1;
  if (contention_ == Contention::fixed) {
    factor = std::max(devices_on_[static_cast<std::size_t>(node)], devices_on_[static_cast<std::size_t>(other)]);
  } else if (crosses_uplink(node, other)) {
    factor = 1 / cluster_->network().oversubscription;  // the uplinks do what the cost model did
  }
  return latency + (alone - latency) * factor;
}

Seconds Network::collective(InstructionKind kind, Bytes bytes, std::span<const int> ranks) const {
  if (ranks.size() < 2) return Seconds(0);
  double factor = 1;
  if (contention_ == Contention::fixed) {
    std::map<int, int> members;
    for (const int rank : ranks) ++members[cluster_->node_of(rank)];
    for (const auto& [node, count] : members) {
      if (members.size() < 2) break;
      factor = std::max(factor, static_cast<double>(devices_on_[static_cast<std::size_t>(node)]) / count);
    }
  }
  const Seconds latency = cost_->all_reduce_time(Bytes(0), ranks);
  Seconds time = latency + (cost_->all_reduce_time(bytes, ranks) - latency) * factor;
  switch (kind) {
    case InstructionKind::all_gather:
    case InstructionKind::reduce_scatter:
      return time * 0.5;
    case InstructionKind::all_to_all:
      time = latency + (time - latency) / static_cast<double>(ranks.size());
      return time * 0.5;
    default:
      return time;
  }
}

Seconds Network::parameter_server(Bytes bytes, std::span<const int> ranks) const {
  Seconds carried{}, to_server{}, from_server{};
  for (const int worker : ranks.subspan(ranks.empty() ? 0 : 1)) {
    const Seconds push = transfer(Bytes(0), worker, ranks.front()), pull = transfer(Bytes(0), ranks.front(), worker);
    carried += transfer(bytes, worker, ranks.front()) - push + transfer(bytes, ranks.front(), worker) - pull;
    to_server = std::max(to_server, push);
    from_server = std::max(from_server, pull);
  }
  return to_server + carried + from_server;
}

std::int32_t Network::port(std::int32_t index, Way way) const {
  return index * 2 + (way == Way::in && !half_duplex_ ? 1 : 0);
}

int Network::nodes_of_uplink() const {
  const auto& tiers = cluster_->network().tiers;
  return tiers.empty() ? static_cast<int>(devices_on_.size()) : tiers.back().nodes;
}

bool Network::crosses_uplink(int node, int other) const {
  if (cluster_->network().oversubscription <= 1) return false;
  const bool tiered = !cluster_->network().tiers.empty();
  return !tiered || node / nodes_of_uplink() != other / nodes_of_uplink();
}

PortUse Network::uplink(int node, Way way) const {
  const auto first = static_cast<std::int32_t>(cluster_->size()) + static_cast<std::int32_t>(devices_on_.size());
  return {port(first + node / nodes_of_uplink(), way),
          cluster_->network().oversubscription / static_cast<double>(nodes_of_uplink())};
}

std::vector<PortUse> Network::message_ports(int from, int to) const {
  const int node = cluster_->node_of(from), other = cluster_->node_of(to);
  if (node == other) return {{port(from, Way::out), 1}, {port(to, Way::in), 1}};
  const std::int32_t nodes = static_cast<std::int32_t>(cluster_->size());
  std::vector<PortUse> ports{{port(nodes + node, Way::out), 1}, {port(nodes + other, Way::in), 1}};
  if (crosses_uplink(node, other)) {
    const PortUse up = uplink(node, Way::out), down = uplink(other, Way::in);
    ports.push_back(up);
    if (down.port != up.port) ports.push_back(down);
  }
  return ports;
}

std::vector<PortUse> Network::collective_ports(std::span<const int> ranks) const {
  std::vector<int> nodes;
  for (const int rank : ranks) nodes.push_back(cluster_->node_of(rank));
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::vector<PortUse> ports;
  const auto add = [&](std::int32_t index) {
    ports.push_back({port(index, Way::out), 1});
    if (!half_duplex_) ports.push_back({port(index, Way::in), 1});
  };
  if (nodes.size() == 1) {
    for (const int rank : ranks) add(rank);
    return ports;
  }
  for (const int node : nodes) add(static_cast<std::int32_t>(cluster_->size()) + node);
  if (!crosses_uplink(nodes.front(), nodes.back())) return ports;
  std::vector<std::int32_t> seen;
  for (const int node : nodes) {
    for (const Way way : {Way::out, Way::in}) {
      const PortUse use = uplink(node, way);
      if (std::find(seen.begin(), seen.end(), use.port) != seen.end()) continue;
      seen.push_back(use.port);
      ports.push_back(use);
    }
  }
  return ports;
}

std::vector<PortUse> Network::parameter_server_ports(std::span<const int> ranks) const {
  std::map<std::int32_t, double> loads;
  const double part = 1 / (2 * (static_cast<double>(ranks.size()) - 1));
  for (const int worker : ranks.subspan(1)) {
    for (const PortUse& use : message_ports(worker, ranks.front())) loads[use.port] += part * use.load;
    for (const PortUse& use : message_ports(ranks.front(), worker)) loads[use.port] += part * use.load;
  }
  std::vector<PortUse> ports;
  for (const auto& [port, load] : loads) ports.push_back({port, load});
  return ports;
}

std::int32_t Network::ports() const {
  return 2 * (static_cast<std::int32_t>(cluster_->size()) + 2 * static_cast<std::int32_t>(devices_on_.size()));
}

}  // namespace millrace::sim
