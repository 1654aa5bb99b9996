// The inputs of a plan, as they were read: what a user compares with what was meant (REPORTS P16).
#include <cmath>

#include <fmt/format.h>

#include "base/count.h"
#include "base/text.h"
#include "planner/explain.h"

namespace millrace::planner {
namespace {

std::string rate(double value, const char* unit) {
  return std::isinf(value) ? "unlimited" : fmt::format("{} {}", shortest(value), unit);
}

std::string link(const cluster::Link& l) {
  return fmt::format("{}, latency {} s", rate(l.bandwidth.value(), "B/s"), shortest(l.latency.value()));
}

std::string figures(const cluster::Device& device) {
  std::vector<std::string> parts;
  for (const auto& [precision, flops] : device.flops) {
    parts.push_back(fmt::format("{} {}", precision, rate(flops.value(), "FLOP/s")));
  }
  parts.push_back(device.memory ? fmt::format("memory {} B ({})", device.memory->value(), format(*device.memory))
                                : "memory not limited");
  parts.push_back("bandwidth " + rate(device.bandwidth.value(), "B/s"));
  for (const auto& [kind, part] : device.efficiency) {
    parts.push_back(fmt::format("efficiency of {} {}", kind, shortest(part)));
  }
  parts.push_back(fmt::format("speed {}", shortest(device.speed)));
  parts.push_back(fmt::format("launch {} s", shortest(device.launch.value())));
  return join(parts);
}

void add_devices(const cluster::Cluster& cluster, Table& table) {
  std::vector<int> counts(static_cast<std::size_t>(cluster.size()), 0);
  for (int d = 0; d < cluster.size(); ++d) ++counts[static_cast<std::size_t>(cluster.first_alike(d))];
  for (int d = 0; d < cluster.size(); ++d) {
    const int count = counts[static_cast<std::size_t>(d)];
    if (count > 0)
      table.rows.push_back({fmt::format("{} x {}", count, cluster.device(d).name), figures(cluster.device(d))});
  }
}

// Nodes with the same link share a row.
void add_links(const cluster::Cluster& cluster, Table& table) {
  std::string last;
  for (const cluster::Node& node : cluster.nodes()) {
    const std::string text = link(node.link);
    if (text != last) table.rows.push_back({fmt::format("inside {}", node.name), text});
    last = text;
  }
  const cluster::Network& network = cluster.network();
  for (const cluster::Tier& tier : network.tiers) {
    table.rows.push_back({fmt::format("between {} nodes", tier.nodes), link(tier.link)});
  }
  if (cluster.nodes().size() < 2) return;
  table.rows.push_back({"between nodes", fmt::format("{}, oversubscription {}", link(network.link),
                                                     shortest(network.oversubscription))});
}

}  // namespace

Table inputs_table(const Graph& graph, const cluster::Cluster& cluster, std::int64_t batch, std::int64_t bytes_per_real,
                   const std::optional<Bytes>& memory_limit) {
  Table table{{"input", "value"}, {}};
  table.rows.push_back({"graph", fmt::format("{}, {} operators, {} parameters, activations of {} bytes a number",
                                             graph.name(), graph.size(), graph.parameter_count(), bytes_per_real)});
  table.rows.push_back({"batch", fmt::format("{} samples an iteration; times and bytes of stages are those of one "
                                             "micro-batch, bytes of operators those of one sample",
                                             batch)});
  table.rows.push_back({"cluster", fmt::format("{}, {} on {}", cluster.name(), counted(cluster.size(), "device"),
                                               counted(static_cast<std::int64_t>(cluster.nodes().size()), "node"))});
  add_devices(cluster, table);
  add_links(cluster, table);
  if (memory_limit) {
    table.rows.push_back({"memory limit", fmt::format("{} B ({})", memory_limit->value(), format(*memory_limit))});
  }
  return table;
}

}  // namespace millrace::planner
