// Times from profiles written by hand, against arithmetic; and what profiles are refused for.
#include "cost/measured.h"

#include <gmock/gmock.h>

#include "cost/collectives.h"
#include "graph/graph_builder.h"

namespace millrace::cost {
namespace {

using testing::HasSubstr;

Measured of(double seconds) { return {Seconds(seconds), Seconds(0)}; }

// Two operators; the forward times of the first are given by rows, its backwards take twice and three times as long.
Profile profile_of(const std::vector<std::pair<std::int64_t, double>>& times) {
  Profile profile;
  profile.operators = {{"a", Bytes(100), of(2)}, {"b", Bytes(300), of(2)}};
  for (const auto& [rows, seconds] : times) {
    MeasuredSize size;
    size.rows = rows;
    size.operators = {{of(seconds), of(2 * seconds), of(3 * seconds)}, {of(1), of(0), of(0)}};
    profile.sizes.push_back(size);
  }
  return profile;
}

cluster::Cluster two_devices(double speed) {
  cluster::Device fast, slow;
  slow.speed = speed;
  return cluster::Cluster("c", cluster::Kind::described, {fast, slow}, {0, 0},
                          {cluster::Node{"n", {BytesPerSecond(1000), 1_s}}}, {});
}

TEST(MeasuredCost, LinesBetweenSizesAndRowsOutsideOfThem) {
  const cluster::Cluster cluster = two_devices(1);
  const MeasuredCost cost(profile_of({{2, 3}, {4, 5}, {8, 10}}), cluster);
  EXPECT_EQ(cost.op_time(0, 0, 0).total(), 0_s);
  EXPECT_EQ(cost.op_time(0, 1, 0).forward, Seconds(1.5));  // half of 2 rows
  EXPECT_EQ(cost.op_time(0, 2, 0).forward, 3_s);
  EXPECT_EQ(cost.op_time(0, 3, 0).forward, 4_s);
  EXPECT_EQ(cost.op_time(0, 3, 0).backward_input, 8_s);
  EXPECT_EQ(cost.op_time(0, 3, 0).backward_weight, 12_s);
  EXPECT_EQ(cost.op_time(0, 5, 0).forward, Seconds(6.25));
  EXPECT_EQ(cost.op_time(0, 16, 0).forward, 20_s);  // twice 8 rows
  EXPECT_EQ(cost.op_time(1, 4, 0).backward(), 0_s);
}

TEST(MeasuredCost, AGradientMadeOnceForTheBatchIsSharedByItsRows) {
  const cluster::Cluster cluster = two_devices(1);
  const MeasuredCost cost(profile_of({{2, 3}, {4, 5}, {8, 10}}), cluster, {{0}, 16});
  EXPECT_EQ(cost.op_time(0, 8, 0).backward_weight, 15_s);  // half of 30 s
  EXPECT_EQ(cost.op_time(0, 2, 0).backward_weight, Seconds(3.75));
  EXPECT_EQ(cost.op_time(0, 16, 0).backward_weight, 30_s);
  EXPECT_EQ(cost.op_time(0, 2, 0).backward_input, 6_s);  // as without
}

TEST(MeasuredCost, DevicesTakeTheirSpeed) {
  const cluster::Cluster cluster = two_devices(0.5);
  const MeasuredCost cost(profile_of({{2, 3}}), cluster);
  EXPECT_EQ(cost.op_time(0, 2, 0).forward, 3_s);
  EXPECT_EQ(cost.op_time(0, 2, 1).forward, 6_s);
  // 4 s of steps over 400 bytes.
  EXPECT_EQ(cost.update_time(Bytes(50), 0), Seconds(0.5));
  EXPECT_EQ(cost.update_time(Bytes(50), 1), 1_s);
}

// CostModel: time does not fall with rows, time per row does not grow.
TEST(MeasuredCost, NoiseBreaksNoPromise) {
  const cluster::Cluster cluster = two_devices(1);
  const MeasuredCost cost(profile_of({{1, 2}, {2, 9}, {3, 5}, {4, 30}, {8, 12}}), cluster);
  for (std::int64_t rows = 1; rows < 20; ++rows) {
    const double now = cost.op_time(0, rows, 0).forward.value(), next = cost.op_time(0, rows + 1, 0).forward.value();
    EXPECT_GE(next, now) << rows;
    EXPECT_LE(next / static_cast<double>(rows + 1), now / static_cast<double>(rows) * (1 + 1e-12)) << rows;
  }
  EXPECT_EQ(cost.op_time(0, 1, 0).forward, 2_s);
  EXPECT_EQ(cost.op_time(0, 2, 0).forward, 4_s);  // not 9: twice one row
  EXPECT_EQ(cost.op_time(0, 3, 0).forward, 5_s);
  EXPECT_EQ(cost.op_time(0, 8, 0).forward, 12_s);
}

// Medians of operators add up to less than the median of a pass.
TEST(MeasuredCost, OperatorsTakeTogetherWhatTheLongestPassTook) {
  const cluster::Cluster cluster = two_devices(1);
  Profile profile = profile_of({{1, 2}, {2, 3}});
  profile.sizes[0].forward = of(100);  // of a shorter one: of no interest
  profile.sizes[1].forward = of(5);    // its operators: 3 and 1
  profile.sizes[1].backward = of(45);  // 6 and 9
  const MeasuredCost cost(profile, cluster);
  EXPECT_EQ(cost.op_time(0, 2, 0).forward, Seconds(3.75));
  EXPECT_EQ(cost.op_time(1, 2, 0).forward, Seconds(1.25));
  EXPECT_EQ(cost.op_time(0, 2, 0).backward_input, 18_s);
  EXPECT_EQ(cost.op_time(0, 2, 0).backward_weight, 27_s);
  EXPECT_EQ(cost.op_time(0, 1, 0).forward, Seconds(2.5));  // the same factor
}

TEST(MeasuredCost, SumsTakeWhatTheJobsOwnSumsTook) {
  const cluster::Cluster cluster = two_devices(1);
  const std::vector<int> both{0, 1};
  const Seconds small = cheapest_all_reduce(Bytes(1000), both, cluster);
  const Seconds large = cheapest_all_reduce(Bytes(100000), both, cluster);
  Profile profile = profile_of({{2, 3}});
  profile.job.speeds = {1, 1};
  profile.job.reduced = {Bytes(1000), Bytes(100000)};
  profile.job.reductions = {small * 3.0, large * 2.0};
  const MeasuredCost cost(profile, cluster);
  EXPECT_DOUBLE_EQ(cost.all_reduce_time(Bytes(1000), both) / small, 3);
  EXPECT_DOUBLE_EQ(cost.all_reduce_time(Bytes(100000), both) / large, 2);
  EXPECT_DOUBLE_EQ(cost.all_reduce_time(Bytes(10000), both) / cheapest_all_reduce(Bytes(10000), both, cluster), 2.5);
  EXPECT_DOUBLE_EQ(cost.all_reduce_time(Bytes(10), both) / cheapest_all_reduce(Bytes(10), both, cluster), 3);
  EXPECT_EQ(cost.transfer_time(Bytes(1000), 0, 1), 2_s);
}

Graph linear(std::int64_t width, const std::string& name = "a") {
  GraphBuilder builder("net");
  const TensorId x = builder.input("x", {Dims{4}});
  builder.add(
      {.name = name, .kind = "linear", .inputs = {x}, .attributes = {{"out_features", width}, {"bias", false}}});
  return builder.build();
}

TEST(Profile, SaysWhatItIsNotOf) {
  const Graph graph = linear(8);
  Profile profile = profile_of({{2, 3}});
  profile.model = "net";
  profile.graph_digest = graph.digest();
  profile.cpu = "cpu";
  profile.threads = 2;
  profile.kernels = "onednn";
  profile.precision = "fp32";
  const ProfileUse use{"cpu", 2, "onednn", "fp32"};
  EXPECT_EQ(why_not_usable(profile, graph, use), "");
  EXPECT_EQ(why_not_usable(profile, graph, {"", 0, "onednn", "fp32"}), "");
  EXPECT_THAT(why_not_usable(profile, linear(8, "z"), use), HasSubstr("operator 'z' of model net is not in it"));
  EXPECT_THAT(why_not_usable(profile, linear(9), use), HasSubstr("other shapes"));
  EXPECT_THAT(why_not_usable(profile, graph, {"cpu", 2, "onednn", "fp64"}), HasSubstr("fp32, train.precision is fp64"));
  EXPECT_THAT(why_not_usable(profile, graph, {"cpu", 2, "reference", "fp32"}), HasSubstr("kernels onednn"));
  EXPECT_THAT(why_not_usable(profile, graph, {"other", 2, "onednn", "fp32"}),
              HasSubstr("another processor (cpu; this one is other)"));
  EXPECT_THAT(why_not_usable(profile, graph, {"cpu", 1, "onednn", "fp32"}),
              HasSubstr("2 threads a rank, here a rank has 1"));
}

}  // namespace
}  // namespace millrace::cost
