// Reads devices by name, then the nodes that list them.
#include "cluster/long_form.h"

#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "cluster/rates.h"

namespace millrace::cluster {
namespace {

constexpr std::int64_t kMost = 1 << 20;
constexpr double kSmallest = 1e-9;  // of what is divided by

// Classes of operators by what bounds them (cost/saturation.h).
const std::vector<std::string> kKinds{"conv", "matmul", "memory", "attention", "fused_attention", "other"};

using Kinds = std::map<std::string, Device, std::less<>>;

// The allowed keys of a map whose values are of one type: flops by precision, efficiency by kind of operator.
template <class Read>
void read_each(const config::Field& field, const std::vector<std::string>& names, const Read& read) {
  config::Reader map = field.map();
  for (const std::string& name : names) {
    if (const config::Field value = map.field(name)) read(name, value);
  }
}

Device read_device(const std::string& name, const config::Field& field) {
  config::Reader reader = field.map();
  Device device;
  device.name = name;
  if (const config::Field flops = reader.field("flops")) {
    read_each(flops, {"fp32", "bf16", "fp64"}, [&](const std::string& precision, const config::Field& value) {
      device.flops[precision] = read_compute_rate(value);
    });
  }
  device.memory = reader.optional("memory", config::Size{});
  const config::Field bandwidth = reader.field("bandwidth");
  device.bandwidth = bandwidth ? read_bandwidth(bandwidth) : kUnlimited;
  if (const config::Field efficiency = reader.field("efficiency")) {
    read_each(efficiency, kKinds, [&](const std::string& kind, const config::Field& value) {
      device.efficiency[kind] = value.as(config::Real{kSmallest, 1.0});
    });
  }
  if (const config::Field ramp = reader.field("ramp")) {
    read_each(ramp, kKinds, [&](const std::string& kind, const config::Field& value) {
      device.ramp[kind] = value.as(config::Duration{});
    });
  }
  device.speed = reader.get("speed", config::Real{kSmallest}, 1.0);
  device.launch = reader.get("launch", config::Duration{}, Seconds{});
  return device;
}

Kinds read_kinds(const config::Field& field) {
  Kinds kinds;
  config::Reader reader(field);
  for (const auto& [name, device] : reader.entries()) kinds.emplace(name, read_device(name, device));
  if (!field) field.refuse("missing, allowed: a map of devices by name, which nodes list");
  return kinds;
}

// What the entries of `nodes` add up to.
class Machine {
 public:
  explicit Machine(const Kinds& kinds) : kinds_(kinds) {}

  void add(const config::Field& field) {
    config::Reader reader = field.map();
    const auto count = static_cast<int>(reader.get("count", config::Integer{1, kMost}, 1));
    const std::string name = reader.get("name", config::Text{}, "");
    const config::Field list = reader.field("devices");
    std::vector<Device> devices;
    for (const config::Field& item : list.items()) {
      if (const Device* device = find(item)) devices.push_back(*device);
    }
    if (list.is_list() && list.items().empty()) list.refuse("a node needs at least one device");
    Link link{kUnlimited, Seconds{}};
    const config::Field link_field = reader.field("link");
    if (link_field) {
      config::Reader map = link_field.map();
      link = read_link(map);
    } else if (list.items().size() > 1) {
      link_field.refuse("missing: the devices of a node share a link; allowed: {bandwidth: 12 GB/s, latency: 10 us}");
    }
    if (static_cast<std::int64_t>(devices_.size()) + static_cast<std::int64_t>(devices.size()) * count > kMost) {
      return field.refuse(fmt::format("more than {} devices", kMost));
    }
    for (int i = 0; i < count; ++i) add(devices, name_of(name, count, i), link);
  }

  std::size_t nodes() const { return nodes_.size(); }

  std::optional<Cluster> finish(const std::string& name, Network network, Host host) {
    if (devices_.empty()) return std::nullopt;
    Cluster cluster(name, Kind::described, std::move(devices_), std::move(node_of_), std::move(nodes_),
                    std::move(network));
    cluster.set_host(host);
    return cluster;
  }

 private:
  const Device* find(const config::Field& item) const {
    const std::string name = item.as(config::Text{});
    const auto found = kinds_.find(name);
    if (found != kinds_.end()) return &found->second;
    std::vector<std::string> names;
    for (const auto& kind : kinds_) names.push_back(kind.first);
    if (!name.empty()) item.refuse(unknown_name("device", name, names));
    return nullptr;
  }

  std::string name_of(const std::string& name, int count, int index) const {
    if (name.empty()) return fmt::format("node {}", nodes_.size());
    return count == 1 ? name : fmt::format("{} {}", name, index);
  }

  void add(const std::vector<Device>& devices, std::string name, const Link& link) {
    for (const Device& device : devices) {
      devices_.push_back(device);
      node_of_.push_back(static_cast<int>(nodes_.size()));
    }
    nodes_.push_back({std::move(name), link});
  }

  const Kinds& kinds_;
  std::vector<Device> devices_;
  std::vector<int> node_of_;
  std::vector<Node> nodes_;
};

// Groups of nodes on a faster link, smallest first; sizes that do not nest, or that leave a rest, are problems.
std::vector<Tier> read_tiers(const config::Field& field, std::size_t nodes) {
  std::vector<Tier> tiers;
  int inner = 1;
  for (const config::Field& item : field.items()) {
    config::Reader reader = item.map();
    const config::Field size = reader.field("nodes");
    Tier tier{static_cast<int>(size.as(config::Integer{2, kMost})), read_link(reader)};
    const bool nests =
        tier.nodes > inner && tier.nodes % inner == 0 && nodes % static_cast<std::size_t>(tier.nodes) == 0;
    if (tier.nodes >= 2 && !nests) {
      size.refuse(
          fmt::format("groups of {} nodes do not divide the {} nodes into groups of {}", tier.nodes, nodes, inner));
    }
    if (!nests) continue;
    inner = tier.nodes;
    tiers.push_back(tier);
  }
  return tiers;
}

Network read_network(const config::Field& field, std::size_t nodes) {
  if (!field) {
    if (nodes > 1) {
      field.refuse(
          fmt::format("missing: {} nodes talk over a network; allowed: {{bandwidth: 25 Gb/s, latency: 30 us}}", nodes));
    }
    return Network{Link{kUnlimited, Seconds{}}};
  }
  config::Reader reader = field.map();
  Network network;
  network.link = read_link(reader);
  network.oversubscription = reader.get("oversubscription", config::Real{1.0}, 1.0);
  if (const config::Field groups = reader.field("groups")) network.tiers = read_tiers(groups, nodes);
  return network;
}

Host read_host(const config::Field& field) {
  if (!field) return {};
  config::Reader reader = field.map();
  Host host;
  host.dispatch = reader.get("dispatch", config::Duration{}, Seconds{});
  host.spread = reader.get("spread", config::Real{0.0, 1.0}, 0.0);
  return host;
}

}  // namespace

Link read_link(config::Reader& reader) {
  return {read_bandwidth(reader.field("bandwidth")), reader.get("latency", config::Duration{}, Seconds{})};
}

std::optional<Cluster> read_long_form(config::Reader& reader, const std::string& name) {
  const Kinds kinds = read_kinds(reader.field("devices"));
  Machine machine(kinds);
  const config::Field nodes = reader.field("nodes");
  for (const config::Field& node : nodes.items()) machine.add(node);
  if (nodes.is_list() && nodes.items().empty()) nodes.refuse("needs at least one node");
  Network network = read_network(reader.field("network"), machine.nodes());
  return machine.finish(name, std::move(network), read_host(reader.field("host")));
}

}  // namespace millrace::cluster
