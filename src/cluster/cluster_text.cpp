// Writes a cluster in its long form.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cluster/cluster_file.h"
#include "cluster/rates.h"
#include "config/emit.h"

namespace millrace::cluster {
namespace {

void add_link(config::Node& map, const Link& link) {
  map.add("bandwidth", write_bandwidth(link.bandwidth));
  map.add("latency", config::to_node(config::Value(link.latency)));
}

config::Node real(double value) { return config::to_node(config::Value(value)); }

config::Node to_node(const Device& device) {
  config::Node map = config::Node::map();
  if (!device.flops.empty()) {
    config::Node& flops = map.add("flops", config::Node::map());
    for (const auto& [precision, rate] : device.flops) {
      flops.add(precision, config::Node::plain(fmt::format("{} FLOP/s", rate.value())));
    }
  }
  if (device.memory) map.add("memory", config::to_node(config::Value(*device.memory)));
  map.add("bandwidth", write_bandwidth(device.bandwidth));
  if (!device.efficiency.empty()) {
    config::Node& efficiency = map.add("efficiency", config::Node::map());
    for (const auto& [kind, part] : device.efficiency) efficiency.add(kind, real(part));
  }
  if (!device.ramp.empty()) {
    config::Node& ramp = map.add("ramp", config::Node::map());
    for (const auto& [kind, time] : device.ramp) ramp.add(kind, config::to_node(config::Value(time)));
  }
  map.add("speed", real(device.speed));
  map.add("launch", config::to_node(config::Value(device.launch)));
  return map;
}

// Names of the devices of each node.
std::vector<std::vector<std::string>> names_by_node(const Cluster& cluster) {
  std::vector<std::vector<std::string>> names(cluster.nodes().size());
  for (int d = 0; d < cluster.size(); ++d) {
    names[static_cast<std::size_t>(cluster.node_of(d))].push_back(cluster.device(d).name);
  }
  return names;
}

bool default_name(const Cluster& cluster, std::size_t node) {
  return cluster.nodes()[node].name == fmt::format("node {}", node);
}

config::Node nodes_of(const Cluster& cluster) {
  config::Node list = config::Node::sequence();
  const std::vector<std::vector<std::string>> names = names_by_node(cluster);
  for (std::size_t first = 0; first < names.size();) {
    const Node& node = cluster.nodes()[first];
    std::size_t next = first + 1;
    while (default_name(cluster, first) && next < names.size() && default_name(cluster, next) &&
           names[next] == names[first] && cluster.nodes()[next].link == node.link) {
      ++next;
    }
    config::Node map = config::Node::map();
    map.add("count", config::Node::plain(fmt::format("{}", next - first)));
    if (!default_name(cluster, first)) map.add("name", config::Node::quote(node.name));
    config::Node devices = config::Node::sequence();
    for (const std::string& name : names[first]) devices.items.push_back(config::Node::quote(name));
    map.add("devices", std::move(devices));
    add_link(map.add("link", config::Node::map()), node.link);
    list.items.push_back(std::move(map));
    first = next;
  }
  return list;
}

}  // namespace

config::Node to_node(const Cluster& cluster) {
  config::Node root = config::Node::map();
  root.add("name", config::Node::quote(cluster.name()));
  if (cluster.emulated()) root.add("emulated", config::Node::plain("true"));
  config::Node& devices = root.add("devices", config::Node::map());
  for (const Device& device : cluster.devices()) {
    if (devices.find(device.name) == nullptr) devices.add(device.name, to_node(device));
  }
  root.add("nodes", nodes_of(cluster));
  if (cluster.host() != Host{}) {
    config::Node& host = root.add("host", config::Node::map());
    host.add("dispatch", config::to_node(config::Value(cluster.host().dispatch)));
    host.add("spread", real(cluster.host().spread));
  }
  const Network& network = cluster.network();
  config::Node& map = root.add("network", config::Node::map());
  add_link(map, network.link);
  map.add("oversubscription", real(network.oversubscription));
  if (network.tiers.empty()) return root;
  config::Node groups = config::Node::sequence();
  for (const Tier& tier : network.tiers) {
    config::Node group = config::Node::map();
    group.add("nodes", config::Node::plain(fmt::format("{}", tier.nodes)));
    add_link(group, tier.link);
    groups.items.push_back(std::move(group));
  }
  map.add("groups", std::move(groups));
  return root;
}

}  // namespace millrace::cluster
