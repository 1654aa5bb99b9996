// Operator times against arithmetic by hand.
#include "cost/analytic.h"

#include <gtest/gtest.h>

#include "base/errors.h"
#include "graph/graph_builder.h"

namespace millrace::cost {
namespace {

// 100 FLOP/s, of which matmul reaches half; 10 B/s; 1 s to launch an operator.
cluster::Cluster one_device(double flops, double bandwidth, double speed = 1.0) {
  cluster::Device device;
  device.name = "d";
  device.flops = {{"fp32", FlopsPerSecond(flops)}};
  device.efficiency = {{"matmul", 0.5}};
  device.bandwidth = BytesPerSecond(bandwidth);
  device.launch = 1_s;
  device.speed = speed;
  return cluster::Cluster("c", cluster::Kind::described, {device}, {0}, {cluster::Node{"n"}}, {});
}

Graph two_linears() {
  GraphBuilder builder("two");
  TensorId x = builder.input("x", {Dims{4}});
  x = builder.add({.name = "a",
                   .kind = "linear",
                   .inputs = {x},
                   .attributes = {{"out_features", std::int64_t{8}}, {"bias", false}}});
  builder.add({.name = "b",
               .kind = "linear",
               .inputs = {x},
               .attributes = {{"out_features", std::int64_t{2}}, {"bias", false}}});
  return builder.build();
}

TEST(AnalyticCost, ComputeBoundCountsFlopsOverReachedPeak) {
  const Graph graph = two_linears();
  const cluster::Cluster cluster = one_device(100, 1e12);
  const AnalyticCost cost(graph, cluster);
  // Forward of b: 2 · 8 · 2 = 32 flops a row, at 50 FLOP/s.
  EXPECT_NEAR(cost.op_time(1, 5, 0).forward.value(), 1 + 5 * 32.0 / 50, 1e-6);
  EXPECT_NEAR(cost.op_time(1, 5, 0).backward_input.value(), 1 + 5 * 32.0 / 50, 1e-6);
  EXPECT_NEAR(cost.op_time(1, 5, 0).backward_weight.value(), 1 + 5 * 32.0 / 50, 1e-6);
  EXPECT_EQ(cost.op_time(1, 0, 0).total(), 0_s);
}

TEST(AnalyticCost, ReachedPeakIsThatOfTheKind) {
  GraphBuilder builder("sequence");
  const TensorId x = builder.input("x", {Dims{3, 4}});
  builder.add({.name = "a", .kind = "lstm", .inputs = {x}, .attributes = {{"hidden", std::int64_t{2}}}});
  builder.add({.name = "b", .kind = "tanh", .inputs = {x}});
  const Graph graph = builder.build();
  const cluster::Cluster cluster = one_device(100, 1e12);
  const AnalyticCost cost(graph, cluster);
  // Of 3 positions: 8 gates read 4 features and 2 units, and 54 operations for each unit; products reach half.
  EXPECT_NEAR(cost.op_time(0, 1, 0).forward.value(), 1 + (2 * 3 * 8 * 6 + 54 * 6) / 50.0, 1e-6);
  EXPECT_NEAR(cost.op_time(1, 1, 0).forward.value(), 1 + 10 * 12 / 100.0, 1e-6);
}

TEST(AnalyticCost, MemoryBoundCountsBytes) {
  const Graph graph = two_linears();
  const cluster::Cluster cluster = one_device(1e12, 10);
  const AnalyticCost cost(graph, cluster);
  // Forward of b: (8 + 2) numbers a row and 16 weights, 4 bytes each.
  EXPECT_NEAR(cost.op_time(1, 5, 0).forward.value(), 1 + (5 * 40 + 64) / 10.0, 1e-6);
}

TEST(AnalyticCost, NoGradientFlowsToTheData) {
  const Graph graph = two_linears();
  const cluster::Cluster cluster = one_device(100, 1e12);
  const AnalyticCost cost(graph, cluster);
  EXPECT_EQ(cost.op_time(0, 5, 0).backward_input, 0_s);
  EXPECT_GT(cost.op_time(0, 5, 0).backward_weight, 0_s);
}

TEST(AnalyticCost, SpeedScalesWorkAndTimePerRowNeverGrows) {
  const Graph graph = two_linears();
  const cluster::Cluster slow = one_device(100, 1e12, 0.5);
  const AnalyticCost cost(graph, slow);
  EXPECT_NEAR(cost.op_time(1, 5, 0).forward.value(), 1 + 5 * 32.0 / 25, 1e-6);
  for (std::int64_t rows = 1; rows < 64; ++rows) {
    const double now = cost.op_time(1, rows, 0).total().value() / static_cast<double>(rows);
    const double next = cost.op_time(1, rows + 1, 0).total().value() / static_cast<double>(rows + 1);
    EXPECT_LE(next, now * (1 + 1e-12));
  }
}

TEST(AnalyticCost, RefusesAPrecisionThatTheDeviceLacks) {
  const Graph graph = two_linears();
  const cluster::Cluster cluster = one_device(100, 10);
  EXPECT_THROW(AnalyticCost(graph, cluster, "bf16"), InvalidInput);
  EXPECT_THROW(AnalyticCost(graph, cluster, "fp33"), InvalidInput);
}

}  // namespace
}  // namespace millrace::cost
