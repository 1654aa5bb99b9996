// Parts of plans on unequal devices: they follow the speed of the devices of each stage, as far as memory goes.
#include "shard/plan_splitter.h"

#include <gmock/gmock.h>

#include "graph/footprint.h"
#include "models/families.h"

namespace millrace::shard {
namespace {

using ::testing::ElementsAre;

const Graph& network() {
  static const Graph graph =
      models::make_gpt({.layers = 2, .width = 512, .heads = 8, .sequence = 64, .vocabulary = 1024, .tied = false});
  return graph;
}

cluster::Cluster unequal_devices(const std::vector<double>& speeds,
                                 const std::vector<std::optional<Bytes>>& memory = {}) {
  std::vector<cluster::Device> list;
  for (std::size_t d = 0; d < speeds.size(); ++d) {
    cluster::Device& device = list.emplace_back();
    device = {.name = "device", .flops = {{"fp32", FlopsPerSecond(1e12)}}, .speed = speeds[d]};
    device.bandwidth = BytesPerSecond(1e12);
    if (!memory.empty()) device.memory = memory[d];
  }
  const std::vector<int> node_of(speeds.size(), 0);
  return cluster::Cluster("unequal", cluster::Kind::described, std::move(list), node_of,
                          {{"node", {BytesPerSecond(1e12), Seconds(0)}}}, {});
}

// Two stages of two devices each, cut behind the first block.
Plan two_stages(const Graph& graph) {
  const OpId cut = graph.find_op("blocks.1.norm1");
  Plan plan;
  Pipeline& pipeline = plan.pipelines.emplace_back();
  pipeline.micro_batches = 2;
  pipeline.stages = {{OpList::range(0, cut), {0, 1}, {1.0}, 2, {}},
                     {OpList::range(cut, static_cast<OpId>(graph.size())), {2, 3}, {1.0}, 2, {}}};
  return plan;
}

std::vector<double> share(const Graph& graph, const StageParts& parts, const std::string& op) {
  return parts.shares.at(graph.find_op(op));
}

std::int64_t parameter_bytes_of(const StageParts& parts, std::size_t device) {
  const StageGraph& part = parts.devices[device].stage;
  return parameter_bytes(*part.graph, part.ops, 4).value();
}

TEST(PlanSplitter, PartsFollowTheDevicesOfTheirStage) {
  const cluster::Cluster cluster = unequal_devices({1, 3, 3, 1});
  const PlanSplitter splitter(network(), cluster, {.batch = 16});
  const auto parts = splitter.parts(two_stages(network()));
  EXPECT_THAT(share(network(), *parts[0], "blocks.0.attention.core"), ElementsAre(0.25, 0.75));
  EXPECT_THAT(share(network(), *parts[1], "blocks.1.attention.core"), ElementsAre(0.75, 0.25));
  // What has been asked before is not made again.
  EXPECT_EQ(splitter.parts(two_stages(network())), parts);
}

TEST(PlanSplitter, EqualDevicesHaveEqualParts) {
  const cluster::Cluster cluster = unequal_devices({2, 2, 1, 1});
  const auto parts = PlanSplitter(network(), cluster, {.batch = 16}).parts(two_stages(network()));
  EXPECT_THAT(share(network(), *parts[0], "blocks.0.attention.core"), ElementsAre(0.5, 0.5));
  EXPECT_THAT(share(network(), *parts[1], "blocks.1.attention.core"), ElementsAre(0.5, 0.5));
}

// The slowest replica counts: parameters have the same parts in all.
TEST(PlanSplitter, ReplicasHaveTheSameParts) {
  const cluster::Cluster cluster = unequal_devices({1, 3, 3, 1});
  Plan plan;
  Pipeline& pipeline = plan.pipelines.emplace_back();
  pipeline.stages = {{OpList::range(0, static_cast<OpId>(network().size())), {0, 1, 2, 3}, {0.5, 0.5}, 2, {}}};
  const auto parts = PlanSplitter(network(), cluster, {.batch = 16}).parts(plan);
  EXPECT_THAT(share(network(), *parts[0], "blocks.0.attention.core"), ElementsAre(0.5, 0.5));
}

// What the fast device cannot hold goes to the slow one, in the stage that lacks room alone.
TEST(PlanSplitter, PartsFollowSpeedWithinMemory) {
  const Plan plan = two_stages(network());
  const cluster::Cluster roomy = unequal_devices({1, 3, 1, 3});
  const auto free = PlanSplitter(network(), roomy, {.batch = 16}).parts(plan);
  const std::int64_t wanted = parameter_bytes_of(*free[0], 1);
  const cluster::Cluster tight = unequal_devices({1, 3, 1, 3}, {{}, Bytes(4 * wanted * 7 / 8), {}, {}});
  const auto parts = PlanSplitter(network(), tight, {.batch = 16}).parts(plan);
  EXPECT_LT(parameter_bytes_of(*parts[0], 1), wanted);
  EXPECT_GT(parameter_bytes_of(*parts[0], 0), parameter_bytes_of(*free[0], 0));
  EXPECT_THAT(share(network(), *parts[1], "blocks.1.attention.core"), ElementsAre(0.25, 0.75));
}

}  // namespace
}  // namespace millrace::shard
