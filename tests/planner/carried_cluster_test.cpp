// The machines of other planners' files as clusters, and what an experiment changes of them.
#include "planner/carried_cluster.h"

#include <gmock/gmock.h>

#include "base/errors.h"
#include "graph/graph_builder.h"

namespace millrace::planner {
namespace {

Graph carrying(Carried carried) {
  GraphBuilder builder("g");
  builder.add_cost("a", {}, {});
  builder.carry(std::move(carried));
  return builder.build();
}

Graph split() {
  SplitModel model;
  model.ops.resize(1);
  model.accelerators = 3;
  model.cpus = 2;
  model.memory_bytes = 16e9;
  return carrying({"dnn-partitioning", model});
}

TEST(CarriedCluster, AcceleratorsComeBeforeCpuCores) {
  const cluster::Cluster c = carried_cluster(split(), {});
  ASSERT_EQ(c.size(), 5);
  EXPECT_EQ(c.kind(), cluster::Kind::described);
  for (const int d : {0, 1, 2}) {
    EXPECT_EQ(c.device(d).name, "accelerator");
    EXPECT_EQ(c.device(d).memory, Bytes(16'000'000'000));
  }
  for (const int d : {3, 4}) {
    EXPECT_EQ(c.device(d).name, "cpu");
    EXPECT_FALSE(c.device(d).memory);
  }
  EXPECT_EQ(c.nodes().size(), 1U);
  EXPECT_EQ(c.link(0, 4).time(1_GiB), Seconds(0));
}

TEST(CarriedCluster, ChangesAreOfAccelerators) {
  const cluster::Cluster c = carried_cluster(split(), {1, 4_GiB, BytesPerSecond(1e9)});
  ASSERT_EQ(c.size(), 3);
  EXPECT_EQ(c.device(0).memory, 4_GiB);
  EXPECT_EQ(c.device(1).name, "cpu");
  EXPECT_EQ(c.link(0, 1).bandwidth.value(), 1e9);
}

TEST(CarriedCluster, PiperHasDevicesMemoryAndBandwidth) {
  TensorParallelModel model;
  model.ops.resize(1);
  model.devices = 8;
  model.memory_bytes = 8589934592;
  model.bytes_per_second = 25.0 * 1073741824;
  const Graph graph = carrying({"piper", model});
  const cluster::Cluster c = carried_cluster(graph, {});
  ASSERT_EQ(c.size(), 8);
  EXPECT_EQ(c.device(7).memory, 8_GiB);
  EXPECT_EQ(c.link(0, 7).bandwidth.value(), 26843545600.0);
  EXPECT_EQ(carried_cluster(graph, {1024, {}, {}}).size(), 1024);
}

TEST(CarriedCluster, AGraphWithoutAMachineIsRefused) {
  EXPECT_THROW(carried_cluster(carrying({"pipedream", LayerProfile{}}), {}), InvalidInput);
  GraphBuilder builder("plain");
  builder.add_cost("a", {}, {});
  try {
    carried_cluster(builder.build(), {});
    FAIL() << "not refused";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("'plain' carries no machine"));
  }
}

}  // namespace
}  // namespace millrace::planner
