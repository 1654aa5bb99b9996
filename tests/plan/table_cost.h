// For tests: small graphs whose operators take given times, and machines without communication cost.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cluster/cluster.h"
#include "cost/cost_model.h"
#include "graph/graph_builder.h"
#include "plan/problem.h"

namespace millrace::testing_support {

/// Operators n0 → n1 → … of kind relu on one number.
inline Graph chain(int size) {
  GraphBuilder builder("chain");
  TensorId x = builder.input("x", {Dims{1}});
  for (int i = 0; i < size; ++i) x = builder.add({.name = fmt::format("n{}", i), .kind = "relu", .inputs = {x}});
  return builder.build();
}

/// Residual blocks x → f(x), add: 2 operators each, after a first one.
inline Graph ladder(int blocks) {
  GraphBuilder builder("ladder");
  TensorId x = builder.input("x", {Dims{1}});
  x = builder.add({.name = "stem", .kind = "relu", .inputs = {x}});
  for (int i = 0; i < blocks; ++i) {
    const TensorId f = builder.add({.name = fmt::format("f{}", i), .kind = "relu", .inputs = {x}});
    x = builder.add({.name = fmt::format("add{}", i), .kind = "add", .inputs = {x, f}});
  }
  return builder.build();
}

/// n0, then two branches of two, joined: n0 → (a0 → a1, b0 → b1) → join.
inline Graph branches() {
  GraphBuilder builder("branches");
  TensorId x = builder.input("x", {Dims{1}});
  x = builder.add({.name = "n0", .kind = "relu", .inputs = {x}});
  TensorId a = builder.add({.name = "a0", .kind = "relu", .inputs = {x}});
  a = builder.add({.name = "a1", .kind = "relu", .inputs = {a}});
  TensorId b = builder.add({.name = "b0", .kind = "relu", .inputs = {x}});
  b = builder.add({.name = "b1", .kind = "relu", .inputs = {b}});
  builder.add({.name = "join", .kind = "add", .inputs = {a, b}});
  return builder.build();
}

/// Devices on one node with these speeds.
inline cluster::Cluster machine(const std::vector<double>& speeds, std::vector<Bytes> memory = {}) {
  std::vector<cluster::Device> devices;
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    cluster::Device device;
    device.name = fmt::format("speed {}", speeds[i]);
    device.speed = speeds[i];
    if (!memory.empty()) device.memory = memory[i];
    devices.push_back(std::move(device));
  }
  std::vector<int> node_of(speeds.size(), 0);
  return cluster::Cluster("test", cluster::Kind::described, std::move(devices), std::move(node_of),
                          {cluster::Node{"node"}}, {});
}

/// Forward takes a third of the given time, backward the rest, for each row; communication is free unless given.
class TableCost : public cost::CostModel {
 public:
  TableCost(const cluster::Cluster& cluster, std::vector<double> seconds_per_row, double transfer_latency = 0,
            double reduction = 0)
      : cluster_(&cluster), seconds_(std::move(seconds_per_row)), latency_(transfer_latency), reduction_(reduction) {}

  cost::OpTime op_time(OpId op, std::int64_t rows, int device) const override {
    const Seconds all(seconds_[static_cast<std::size_t>(op)] * static_cast<double>(rows) /
                      cluster_->device(device).speed);
    return {all / 3.0, all / 3.0, all / 3.0};
  }
  Seconds transfer_time(Bytes, int from, int to) const override { return Seconds(from == to ? 0 : latency_); }
  Seconds all_reduce_time(Bytes, std::span<const int> devices) const override {
    return Seconds(devices.size() > 1 ? reduction_ : 0.0);
  }

 private:
  const cluster::Cluster* cluster_;
  std::vector<double> seconds_;
  double latency_, reduction_;
};

/// A problem with everything that it points to.
struct Case {
  Graph graph;
  cluster::Cluster cluster;
  std::unique_ptr<cost::CostModel> cost;
  plan::Problem problem;

  /// `seconds` is each operator's time for all rows of a micro-batch on a device of speed 1.
  Case(Graph of, const std::vector<double>& speeds, std::vector<double> seconds, std::int64_t rows,
       std::int64_t micro_batches = 1, double latency = 0, double reduction = 0)
      : graph(std::move(of)), cluster(machine(speeds)) {
    for (double& time : seconds) time /= static_cast<double>(rows);
    cost = std::make_unique<TableCost>(cluster, std::move(seconds), latency, reduction);
    problem.graph = &graph;
    problem.cluster = &cluster;
    problem.cost = cost.get();
    problem.batch = rows * micro_batches;
    problem.micro_batches = micro_batches;
  }
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;
};

}  // namespace millrace::testing_support
