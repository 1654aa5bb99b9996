// Multiplies out counts of levels and scales devices by their speeds.
#include "cluster/short_form.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cluster/cluster_file.h"
#include "cluster/local.h"
#include "cluster/long_form.h"

namespace millrace::cluster {
namespace {

constexpr std::int64_t kMostDevices = 1 << 20;

struct ShortLevel {
  int count = 1;  // of what is one level below
  Link link{};
};

ShortLevel read_level(config::Reader& reader, const char* count) {
  return {static_cast<int>(reader.required(count, config::Integer{1, kMostDevices})), read_link(reader)};
}

// What a short form says, before it is multiplied out.
struct ShortForm {
  std::vector<ShortLevel> levels;  // innermost first
  std::vector<double> speeds;      // by device; empty: all 1

  std::int64_t size() const {
    std::int64_t devices = levels.empty() ? 0 : 1;
    for (const ShortLevel& level : levels) devices = std::min(devices * level.count, kMostDevices + 1);
    return devices;
  }
};

void read_speeds(const config::Field& field, ShortForm& form) {
  if (!field) return;
  if (!form.speeds.empty()) return field.refuse("speeds are given twice");
  for (const config::Field& item : field.items()) {
    form.speeds.push_back(item.as(config::Real{1e-9}));
  }
  if (field.is_list() && static_cast<std::int64_t>(form.speeds.size()) != form.size()) {
    field.refuse(fmt::format("{} speeds for {} devices", form.speeds.size(), form.size()));
    form.speeds.clear();
  }
}

ShortForm read_form(config::Reader& reader) {
  ShortForm form;
  const config::Field flat = reader.field("flat"), list = reader.field("levels");
  if (flat && list) list.refuse("give flat or levels, not both");
  if (flat) {
    config::Reader map = flat.map();
    form.levels.push_back(read_level(map, "devices"));
    read_speeds(map.field("speeds"), form);
  } else {
    for (const config::Field& item : list.items()) {
      config::Reader map = item.map();
      form.levels.push_back(read_level(map, "count"));
    }
    if (list.is_list() && form.levels.empty()) list.refuse("needs at least one level");
  }
  read_speeds(reader.field("speeds"), form);
  return form;
}

Device plain_device(double speed) {
  Device device = local_cluster(1).device(0);
  device.name = speed == 1.0 ? kPlainDevice : fmt::format("{} at speed {}", kPlainDevice, speed);
  device.speed = speed;
  return device;
}

}  // namespace

std::optional<Cluster> read_short_form(config::Reader& reader, const std::string& name) {
  const ShortForm form = read_form(reader);
  const std::vector<ShortLevel>& levels = form.levels;
  const std::int64_t size = form.size();
  if (size > kMostDevices) reader.refuse(fmt::format("more than {} devices", kMostDevices));
  if (size < 1 || size > kMostDevices) return std::nullopt;

  std::vector<Device> devices(static_cast<std::size_t>(size), plain_device(1.0));
  for (std::size_t d = 0; d < form.speeds.size(); ++d) devices[d] = plain_device(form.speeds[d]);
  const int per_node = levels.front().count;
  const int count = static_cast<int>(size) / per_node;
  std::vector<Node> nodes;
  for (int n = 0; n < count; ++n) nodes.push_back({fmt::format("node {}", n), levels.front().link});
  std::vector<int> node_of;
  for (int d = 0; d < static_cast<int>(size); ++d) node_of.push_back(d / per_node);

  // The outermost level is the network; those between group the nodes. A level of one adds nothing.
  Network network{Link{kUnlimited, Seconds{}}};
  int group = 1;
  for (std::size_t i = 1; i < levels.size(); ++i) {
    if (levels[i].count == 1) continue;
    if (group > 1) network.tiers.push_back({group, network.link});
    group *= levels[i].count;
    network.link = levels[i].link;
  }
  return Cluster(name, Kind::described, std::move(devices), std::move(node_of), std::move(nodes), std::move(network));
}

}  // namespace millrace::cluster
