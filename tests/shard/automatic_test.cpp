// The automatic choice: Megatron's split for transformer blocks, data parallel for ResNet, ratios on mixed devices.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "cost/analytic.h"
#include "models/families.h"
#include "shard/sharding.h"
#include "tests/shard/expect_equal.h"

namespace millrace::shard {
namespace {

cluster::Cluster devices(const std::vector<double>& speeds, std::optional<Bytes> memory = {}) {
  std::vector<cluster::Device> list;
  for (const double speed : speeds) {
    cluster::Device device{.name = "device", .flops = {{"fp32", FlopsPerSecond(1e13)}}, .memory = memory};
    device.bandwidth = BytesPerSecond(5e11);
    device.speed = speed;
    list.push_back(device);
  }
  return cluster::Cluster("test", cluster::Kind::described, list, std::vector<int>(speeds.size(), 0),
                          {{"node", {BytesPerSecond(1e11), Seconds(1e-6)}}}, {});
}

Sharded choose(const Graph& graph, const cluster::Cluster& cluster, std::int64_t rows) {
  const cost::AnalyticCost cost(graph, cluster);
  Request request;
  request.axes = {{"x", cluster.size()}};
  request.rows = rows;
  return shard(graph, cluster, cost, request);
}

Property kept(const Sharded& sharded, const std::string& tensor) {
  const TensorId id = sharded.graph->find_tensor(tensor);
  EXPECT_GE(id, 0) << tensor;
  return sharded.cut.decision.placements[static_cast<std::size_t>(id)][0];
}

TEST(Automatic, FindsMegatronsColumnsAndRows) {
  const Graph graph =
      models::make_gpt({.layers = 3, .width = 1024, .heads = 16, .sequence = 128, .vocabulary = 4096, .tied = true});
  const Sharded sharded = choose(graph, devices({1, 1}), 2);
  EXPECT_TRUE(sharded.automatic);
  EXPECT_TRUE(sharded.exact);
  for (int i = 0; i < 3; ++i) {
    const std::string block = fmt::format("blocks.{}.", i);
    EXPECT_EQ(kept(sharded, block + "attention.qkv.weight"), split(0)) << i;
    EXPECT_EQ(kept(sharded, block + "attention.out.weight"), split(1)) << i;
    EXPECT_EQ(kept(sharded, block + "mlp.up.weight"), split(0)) << i;
    EXPECT_EQ(kept(sharded, block + "mlp.down.weight"), split(1)) << i;
  }
}

TEST(Automatic, FindsDataParallelForResnet) {
  const Graph graph = models::make_resnet("resnet50", {.blocks = {3, 4, 6, 3}, .bottleneck = true});
  const Sharded sharded = choose(graph, devices({1, 1, 1, 1}), 128);
  for (const TensorId id : graph.parameters()) {
    if (graph.tensor(id).name.starts_with("fc")) continue;  // the last layer may go either way
    EXPECT_EQ(sharded.cut.decision.placements[static_cast<std::size_t>(id)][0], kReplicated) << graph.tensor(id).name;
  }
  EXPECT_EQ(kept(sharded, "layer3.2.conv2.output"), split(0));
}

TEST(Automatic, TheChoiceComputesWhatOneDeviceDoes) {
  const Graph graph =
      models::make_gpt({.layers = 2, .width = 12, .heads = 3, .sequence = 4, .vocabulary = 11, .tied = true});
  for (const int count : {2, 4}) {
    const Sharded sharded = choose(graph, devices(std::vector<double>(static_cast<std::size_t>(count), 1.0)), 3);
    const auto given = testing::sources(graph, 3);
    const auto wanted = testing::run_whole(graph, 3, given);
    const auto found =
        testing::run_sharded({graph, *sharded.ops, *sharded.tensors, *sharded.mesh, sharded.cut, true}, given);
    testing::expect_equal(wanted.gradients, found.gradients, graph, "gradient");
  }
}

TEST(Automatic, RatiosFollowSpeedOnMixedDevices) {
  const Graph graph = models::make_resnet("resnet50", {.blocks = {3, 4, 6, 3}, .bottleneck = true});
  const Sharded sharded = choose(graph, devices({1, 0.8, 0.8, 0.6}), 128);
  const Property input = kept(sharded, "conv1.output");
  ASSERT_TRUE(input.is_split());
  const TensorView view = sharded.tensors->view(graph.find_tensor("conv1.output"));
  std::vector<std::int64_t> rows;
  for (int device = 0; device < 4; ++device) rows.push_back(box_of(view, {input}, *sharded.mesh, device)[0].size());
  EXPECT_EQ(rows, (std::vector<std::int64_t>{40, 32, 32, 24}));
}

TEST(BalancedRatio, SpeedWithinMemory) {
  EXPECT_TRUE(balanced_ratio({1, 1}, {}, 0).empty()) << "alike";
  EXPECT_EQ(balanced_ratio({3, 1}, {}, 0), (std::vector<double>{0.75, 0.25}));
  // The fast one holds half of what is split; the rest goes to the others by speed.
  const std::vector<double> capped = balanced_ratio({2, 1, 1}, {25, 100, 100}, 100);
  EXPECT_DOUBLE_EQ(capped[0], 0.25);
  EXPECT_DOUBLE_EQ(capped[1], 0.375);
  EXPECT_DOUBLE_EQ(capped[2], 0.375);
}

TEST(Automatic, SplitsParametersWhereTheyDoNotFitWhole) {
  const Graph graph = models::make_mlp(256, {2048, 2048}, 10);
  // Samples enough that data parallel is fastest, which holds all parameters on each device.
  const std::int64_t rows = 65536;
  const Sharded free = choose(graph, devices({1, 1, 1, 1}), rows);
  const std::int64_t needed = free.memory[0].value();
  const Sharded tight = choose(graph, devices({1, 1, 1, 1}, Bytes(needed - (20 << 20))), rows);
  EXPECT_EQ(kept(free, "linear1.weight"), kReplicated);
  EXPECT_TRUE(tight.fits);
  EXPECT_LT(tight.memory[0].value(), needed - (20 << 20) + 1);
}

}  // namespace
}  // namespace millrace::shard
