// `millrace clusters`: the machines that ship as files; each can be named in an experiment.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/print.h"
#include "app/shipped_clusters.h"
#include "base/text.h"
#include "cluster/cluster_file.h"
#include "planner/explain.h"

namespace millrace::app {
namespace {

using nlohmann::json;

struct Kind {
  cluster::Device device;
  int count = 0;
};

std::vector<Kind> kinds_of(const cluster::Cluster& cluster) {
  std::vector<int> counts(static_cast<std::size_t>(cluster.size()), 0);
  for (int d = 0; d < cluster.size(); ++d) ++counts[static_cast<std::size_t>(cluster.first_alike(d))];
  std::vector<Kind> kinds;
  for (int d = 0; d < cluster.size(); ++d) {
    const int count = counts[static_cast<std::size_t>(d)];
    if (count > 0) kinds.push_back({cluster.device(d), count});
  }
  return kinds;
}

// Of each kind of link once, from inside a node to between all.
std::vector<cluster::Link> links_of(const cluster::Cluster& cluster) {
  std::vector<cluster::Link> links;
  const auto add = [&](const cluster::Link& link) {
    if (std::find(links.begin(), links.end(), link) == links.end()) links.push_back(link);
  };
  for (const cluster::Node& node : cluster.nodes()) add(node.link);
  for (const cluster::Tier& tier : cluster.network().tiers) add(tier.link);
  if (cluster.nodes().size() > 1) add(cluster.network().link);
  return links;
}

std::string link_text(const cluster::Link& link) {
  const double bandwidth = link.bandwidth.value();
  return std::isinf(bandwidth) ? "unlimited" : fmt::format("{} GB/s", planner::shortest(bandwidth / 1e9));
}

json cluster_row(const std::string& name, const std::string& file, const cluster::Cluster& cluster) {
  json kinds = json::array(), links = json::array();
  for (const Kind& kind : kinds_of(cluster)) {
    kinds.push_back({{"name", kind.device.name},
                     {"count", kind.count},
                     {"memory_bytes", kind.device.memory ? json(kind.device.memory->value()) : json(nullptr)},
                     {"speed", kind.device.speed}});
  }
  for (const cluster::Link& link : links_of(cluster)) {
    const double bandwidth = link.bandwidth.value();
    links.push_back({{"bandwidth_bytes_per_s", std::isinf(bandwidth) ? json(nullptr) : json(bandwidth)},
                     {"latency_s", link.latency.value()}});
  }
  const bool mixed = kinds.size() > 1;
  return {{"name", name},
          {"description", cluster.name()},
          {"options", json::array()},
          {"capabilities", mixed ? json::array({"unequal devices"}) : json::array()},
          {"file", file},
          {"devices", cluster.size()},
          {"nodes", cluster.nodes().size()},
          {"kinds", std::move(kinds)},
          {"links", std::move(links)}};
}

std::vector<std::string> table_row(const std::string& name, const cluster::Cluster& cluster) {
  std::vector<std::string> devices, memory, links;
  for (const Kind& kind : kinds_of(cluster)) {
    devices.push_back(fmt::format("{} x {}", kind.count, kind.device.name));
    const std::string text = kind.device.memory ? format(*kind.device.memory) : "not limited";
    if (memory.empty() || memory.back() != text) memory.push_back(text);
  }
  for (const cluster::Link& link : links_of(cluster)) links.push_back(link_text(link));
  return {name, join(devices), fmt::format("{}", cluster.nodes().size()), join(memory), join(links), cluster.name()};
}

}  // namespace

ExitCode list_clusters(const Arguments& arguments, comm::World& world) {
  if (!world.root()) return ExitCode::done;
  json all = json::array();
  planner::Table table{{"cluster", "devices", "nodes", "memory", "links", "description"}, {}};
  for (const std::filesystem::path& file : shipped_clusters()) {
    config::Problems problems;
    const auto cluster = cluster::load_cluster(file, problems);
    problems.throw_if_any();
    all.push_back(cluster_row(file.stem().string(), file.string(), *cluster));
    table.rows.push_back(table_row(file.stem().string(), *cluster));
  }
  if (arguments.format == Format::json) {
    print(all);
  } else {
    print(table_text(table));
  }
  return ExitCode::done;
}

}  // namespace millrace::app
