// The closed forms of METHODS 5.
#include "cost/collectives.h"

#include <gtest/gtest.h>

#include "cluster/local.h"

namespace millrace::cost {
namespace {

constexpr cluster::Link kSlow{BytesPerSecond(100), 1_s};
constexpr cluster::Link kFast{BytesPerSecond(1000), 0_s};

TEST(AllReduce, Ring) {
  EXPECT_DOUBLE_EQ(ring_all_reduce(Bytes(400), 4, kSlow).value(), 6.0 / 4 * 4 + 6);
  EXPECT_DOUBLE_EQ(ring_all_reduce(Bytes(400), 1, kSlow).value(), 0);
}

TEST(AllReduce, Tree) {
  EXPECT_DOUBLE_EQ(tree_all_reduce(Bytes(400), 4, kSlow).value(), 8 + 4);
  EXPECT_DOUBLE_EQ(tree_all_reduce(Bytes(400), 5, kSlow).value(), 8 + 6);
}

TEST(AllReduce, Hierarchical) {
  // 2(g−1)/g·bytes·β₁ + 2(k−1)/k·bytes·β₂ + 2(k−1)α₂ with g = 4, k = 2.
  EXPECT_DOUBLE_EQ(hierarchical_all_reduce(Bytes(400), 2, 4, kFast, kSlow).value(), 1.5 * 0.4 + 4 + 2);
}

TEST(AllReduce, TheCheapestIsTaken) {
  std::vector<cluster::Device> devices(8, cluster::Device{"d"});
  const cluster::Cluster cluster("c", cluster::Kind::described, devices, {0, 0, 0, 0, 1, 1, 1, 1},
                                 {cluster::Node{"a", kFast}, cluster::Node{"b", kFast}}, {kSlow, 1.0});
  const std::vector<int> all{0, 1, 2, 3, 4, 5, 6, 7}, node{0, 1, 2, 3}, uneven{0, 1, 4}, one{3};
  EXPECT_DOUBLE_EQ(cheapest_all_reduce(Bytes(400), all, cluster).value(), 1.5 * 0.4 + 4 + 2);
  EXPECT_DOUBLE_EQ(cheapest_all_reduce(Bytes(400), node, cluster).value(), 1.5 * 0.4);
  // Ring 4/3 · 4 + 4, tree 8 + 4.
  EXPECT_DOUBLE_EQ(cheapest_all_reduce(Bytes(400), uneven, cluster).value(), 16.0 / 3 + 4);
  // A small message: the tree's 6 latencies are fewer than the ring's 14; the hierarchical form has 2.
  EXPECT_DOUBLE_EQ(cheapest_all_reduce(Bytes(0), uneven, cluster).value(), 4);
  EXPECT_EQ(cheapest_all_reduce(Bytes(400), one, cluster), 0_s);
}

}  // namespace
}  // namespace millrace::cost
