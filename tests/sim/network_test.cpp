// Prices and ports of a small cluster, by kind of contention.
#include "sim/network.h"

#include <map>

#include <gmock/gmock.h>

namespace millrace::sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Two nodes of two devices; links of 4 B/s inside, 2 B/s between them at double oversubscription: 1 B/s.
class Linear : public cost::CostModel {
 public:
  explicit Linear(const cluster::Cluster& cluster) : cluster_(&cluster) {}
  cost::OpTime op_time(OpId, std::int64_t, int) const override { return {}; }
  Seconds transfer_time(Bytes amount, int from, int to) const override { return cluster_->link(from, to).time(amount); }
  Seconds all_reduce_time(Bytes amount, std::span<const int> devices) const override {
    return transfer_time(amount, devices.front(), devices.back());
  }

 private:
  const cluster::Cluster* cluster_;
};

cluster::Cluster two_nodes() {
  const cluster::Link inside{BytesPerSecond(4), 1_s}, between{BytesPerSecond(2), 2_s};
  return {"two",        cluster::Kind::described,       std::vector<cluster::Device>(4, cluster::Device{.name = "d"}),
          {0, 0, 1, 1}, {{"a", inside}, {"b", inside}}, {.link = between, .oversubscription = 2}};
}

TEST(Network, MessageTimes) {
  const cluster::Cluster cluster = two_nodes();
  const Linear cost(cluster);
  const auto time = [&](Contention contention, int from, int to) {
    return Network(cluster, cost, contention).transfer(8_B, from, to);
  };
  EXPECT_EQ(time(Contention::none, 0, 1), 3_s);
  EXPECT_EQ(time(Contention::none, 0, 2), 10_s);
  EXPECT_EQ(time(Contention::fixed, 0, 1), 3_s);
  EXPECT_EQ(time(Contention::fixed, 0, 2), 18_s);   // half of the port
  EXPECT_EQ(time(Contention::dynamic, 0, 2), 6_s);  // the uplink does what oversubscription did
}

TEST(Network, CollectiveTimes) {
  const cluster::Cluster cluster = two_nodes();
  const Linear cost(cluster);
  const Network none(cluster, cost, Contention::none), fixed(cluster, cost, Contention::fixed);
  const std::vector<int> across{0, 2}, all{0, 1, 2, 3};
  EXPECT_EQ(none.collective(InstructionKind::all_reduce, 8_B, across), 10_s);
  EXPECT_EQ(none.collective(InstructionKind::all_gather, 8_B, across), 5_s);
  EXPECT_EQ(none.collective(InstructionKind::all_to_all, 8_B, across), 3_s);
  EXPECT_EQ(fixed.collective(InstructionKind::all_reduce, 8_B, across), 18_s);
  EXPECT_EQ(fixed.collective(InstructionKind::all_reduce, 8_B, all), 10_s);  // both devices of each node take part
}

TEST(Network, ParameterServerTimes) {
  const cluster::Cluster cluster = two_nodes();
  const Linear cost(cluster);
  const Network none(cluster, cost, Contention::none), fixed(cluster, cost, Contention::fixed);
  const std::vector<int> near{0, 1}, across{0, 2}, all{0, 1, 2, 3};
  EXPECT_EQ(none.parameter_server(8_B, near), 6_s);     // 2 · 8 B / 4 B/s, 1 s there and 1 s back
  EXPECT_EQ(none.parameter_server(8_B, across), 20_s);  // 2 · 8 B / 1 B/s
  EXPECT_EQ(none.parameter_server(8_B, all), 40_s);     // 4 + 16 + 16 s through the server, 2 s there and back
  EXPECT_EQ(fixed.parameter_server(8_B, across), 36_s);
}

TEST(Network, ParameterServerPorts) {
  const cluster::Cluster cluster = two_nodes();
  const Linear cost(cluster);
  const Network network(cluster, cost, Contention::dynamic);
  std::map<int, double> loads;
  for (const PortUse& use : network.parameter_server_ports(std::vector<int>{0, 1, 2, 3})) loads[use.port] = use.load;
  using testing::DoubleEq;
  using testing::Pair;
  // One of three workers is beside the server, two come through the ports of the nodes; half of the time each way.
  EXPECT_THAT(loads, ElementsAre(Pair(0, DoubleEq(1. / 6)), Pair(1, DoubleEq(1. / 6)), Pair(2, DoubleEq(1. / 6)),
                                 Pair(3, DoubleEq(1. / 6)), Pair(8, DoubleEq(2. / 6)), Pair(9, DoubleEq(2. / 6)),
                                 Pair(10, DoubleEq(2. / 6)), Pair(11, DoubleEq(2. / 6)), Pair(12, DoubleEq(4. / 6)),
                                 Pair(13, DoubleEq(4. / 6))));
}

TEST(Network, Ports) {
  const cluster::Cluster cluster = two_nodes();
  const Linear cost(cluster);
  const Network full(cluster, cost, Contention::dynamic), half(cluster, cost, Contention::dynamic, true);
  const auto ids = [](const std::vector<PortUse>& uses) {
    std::vector<int> out;
    for (const PortUse& use : uses) out.push_back(use.port);
    return out;
  };
  // Devices are 0 … 7, nodes 8 … 11, the uplink 12 and 13: an even number out, an odd one in.
  EXPECT_THAT(ids(full.message_ports(0, 1)), ElementsAre(0, 3));
  EXPECT_THAT(ids(full.message_ports(1, 2)), ElementsAre(8, 11, 12, 13));
  EXPECT_THAT(ids(half.message_ports(1, 2)), ElementsAre(8, 10, 12));
  EXPECT_DOUBLE_EQ(full.message_ports(1, 2)[2].load, 1);  // 2 nodes over oversubscription 2: one flow fills it
  EXPECT_THAT(ids(full.collective_ports(std::vector<int>{0, 1})), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(ids(full.collective_ports(std::vector<int>{0, 2})), ElementsAre(8, 9, 10, 11, 12, 13));
}

}  // namespace
}  // namespace millrace::sim
