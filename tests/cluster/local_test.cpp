// The cluster of a job, its links, and the figures of its devices.
#include "cluster/local.h"

#include <cmath>

#include <gmock/gmock.h>

#include "base/errors.h"

namespace millrace::cluster {
namespace {

TEST(LocalCluster, DeviceKIsRankKAlsoWhenHostsAlternate) {
  const std::vector<std::string> hosts{"a", "b", "a", "b"};
  const Cluster cluster = local_cluster(4, hosts, 2);
  EXPECT_EQ(cluster.size(), 4);
  EXPECT_EQ(cluster.kind(), Kind::local);
  EXPECT_EQ(cluster.nodes().size(), 2U);
  EXPECT_EQ(cluster.node_of(2), 0);
  EXPECT_EQ(cluster.node_of(3), 1);
  EXPECT_EQ(cluster.link(0, 2), kSharedMemory);
  EXPECT_EQ(cluster.link(0, 1), kEthernet);
  EXPECT_TRUE(std::isinf(cluster.link(1, 1).bandwidth.value()));
  EXPECT_EQ(cluster.device(0).peak("fp32"), kCoreFlopsFp32 * 2);
  EXPECT_FALSE(cluster.device(0).memory);
}

TEST(LocalCluster, RefusesBadCounts) {
  EXPECT_THROW(local_cluster(0), InvalidInput);
  EXPECT_THROW(local_cluster(2, {}, 0), InvalidInput);
  const std::vector<std::string> hosts{"a"};
  EXPECT_THROW(local_cluster(2, hosts), InvalidInput);
}

TEST(Cluster, OversubscriptionDividesTheNetwork) {
  const Network network{{BytesPerSecond(1e9), 10_ms}, 4.0};
  const Cluster cluster("c", Kind::described, {Device{"d"}, Device{"d"}}, {0, 1}, {Node{"a"}, Node{"b"}}, network);
  EXPECT_EQ(cluster.link(0, 1).bandwidth.value(), 0.25e9);
  EXPECT_DOUBLE_EQ(cluster.link(0, 1).time(Bytes(250'000'000)).value(), 1.01);
}

TEST(Device, NamesThePrecisionsThatItHas) {
  const Device device = local_cluster(1).device(0);
  EXPECT_EQ(device.reached("conv"), 1.0);
  try {
    device.peak("fp8");
    FAIL() << "not refused";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("fp8"));
    EXPECT_THAT(error.what(), testing::HasSubstr("bf16, fp32, fp64"));
  }
}

}  // namespace
}  // namespace millrace::cluster
