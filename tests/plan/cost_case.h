// For tests: a graph of `cost` operators with the analytic cost model and a machine of given speeds, memory and links.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cluster/cluster.h"
#include "cost/analytic.h"
#include "graph/graph_builder.h"
#include "plan/problem.h"

namespace millrace::testing_support {

/// Forward takes a third of each time, backward the rest, for one row; every operator reads the one before it.
inline Graph cost_chain(const std::vector<double>& seconds, std::int64_t output_bytes = 0, std::int64_t parameters = 0,
                        std::int64_t saved = 0) {
  GraphBuilder builder("chain");
  std::vector<TensorId> last;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const double third = seconds[i] / 3;
    last = {builder.add_cost(fmt::format("n{}", i), last,
                             {.forward_s = third,
                              .backward_input_s = third,
                              .backward_weight_s = third,
                              .parameter_bytes = parameters,
                              .output_bytes = output_bytes,
                              .saved_bytes = saved})};
  }
  return builder.build();
}

struct Machine {
  std::vector<double> speeds;
  std::vector<Bytes> memory{};  ///< of each device; empty: not limited
  cluster::Link link{BytesPerSecond(INFINITY), Seconds(0)};
  int per_node = 0;  ///< devices of a node; 0: all on one
  cluster::Link network{BytesPerSecond(INFINITY), Seconds(0)};
};

inline cluster::Cluster make_cluster(const Machine& machine) {
  std::vector<cluster::Device> devices;
  std::vector<int> node_of;
  std::vector<cluster::Node> nodes;
  for (std::size_t i = 0; i < machine.speeds.size(); ++i) {
    cluster::Device device;
    device.name = fmt::format("speed {}", machine.speeds[i]);
    device.speed = machine.speeds[i];
    if (!machine.memory.empty()) device.memory = machine.memory[i];
    devices.push_back(std::move(device));
    node_of.push_back(machine.per_node > 0 ? static_cast<int>(i) / machine.per_node : 0);
    if (static_cast<std::size_t>(node_of.back()) == nodes.size()) {
      nodes.push_back({fmt::format("node{}", nodes.size()), machine.link});
    }
  }
  return cluster::Cluster("test", cluster::Kind::described, std::move(devices), std::move(node_of), std::move(nodes),
                          {machine.network, 1.0});
}

/// A problem with everything that it points to.
struct CostCase {
  Graph graph;
  cluster::Cluster cluster;
  cost::AnalyticCost cost;
  plan::Problem problem;

  CostCase(Graph of, const Machine& machine, std::int64_t batch, std::int64_t micro_batches)
      : graph(std::move(of)), cluster(make_cluster(machine)), cost(graph, cluster) {
    problem.graph = &graph;
    problem.cluster = &cluster;
    problem.cost = &cost;
    problem.batch = batch;
    problem.micro_batches = micro_batches;
  }
  CostCase(const CostCase&) = delete;
  CostCase& operator=(const CostCase&) = delete;
};

}  // namespace millrace::testing_support
