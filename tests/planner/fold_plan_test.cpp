// A folded plan takes the time and the memory of the whole one on every device, and folds no more than is equal.
#include "planner/fold_plan.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "planner/order_costs.h"
#include "planner/simulated.h"
#include "program/lowering.h"
#include "schedules/registry.h"
#include "tests/plan/table_cost.h"

namespace millrace::planner {
namespace {

using testing_support::Case;
using testing_support::chain;

struct FoldShape {
  int pipelines = 1;
  std::vector<int> replicas;  // by stage
  std::int64_t micro_batches = 4;
  int chunks = 1;
};

// Two operators a stage; devices in order of pipelines, stages and replicas.
Plan shaped(const FoldShape& shape, const std::string& schedule) {
  Plan plan;
  plan.schedule = schedule;
  plan.bucket_size = 8_B;
  int device = 0;
  for (int p = 0; p < shape.pipelines; ++p) {
    Pipeline& pipeline = plan.pipelines.emplace_back();
    pipeline.share = 1.0 / shape.pipelines;
    pipeline.micro_batches = shape.micro_batches;
    OpId op = 0;
    const int first = device;
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      device = first;
      for (const int replicas : shape.replicas) {
        Stage& stage = pipeline.stages.emplace_back();
        stage.ops = OpList::range(op, op + 2);
        op += 2;
        for (int r = 0; r < replicas; ++r) {
          stage.devices.push_back(device++);
          stage.shares.push_back(1.0 / replicas);
        }
      }
    }
  }
  return plan;
}

Graph weighted(int operators) {
  GraphBuilder builder("weighted");
  TensorId x = builder.input("x", {Dims{4}});
  for (int i = 0; i < operators; ++i) {
    x = builder.add({.name = fmt::format("n{}", i),
                     .kind = "linear",
                     .inputs = {x},
                     .attributes = {{"out_features", std::int64_t{4}}}});
  }
  return builder.build();
}

// Sums take longer over more devices, messages longer to farther ones.
class FarCost : public testing_support::TableCost {
 public:
  using TableCost::TableCost;
  Seconds transfer_time(Bytes bytes, int from, int to) const override {
    const int far = slow_link == from || slow_link == to ? 5 : 1;
    return from == to ? Seconds(0) : far * (Seconds(0.125) + static_cast<double>(bytes.value()) * Seconds(1e-3));
  }
  Seconds all_reduce_time(Bytes bytes, std::span<const int> devices) const override {
    return devices.size() < 2 ? Seconds(0)
                              : static_cast<double>(devices.size()) * Seconds(0.01) +
                                    static_cast<double>(bytes.value()) * Seconds(1e-3);
  }
  int slow_link = -1;  // device
};

struct Folding {
  Folding(const FoldShape& shape, const std::string& schedule, std::int64_t batch, std::vector<double> speeds = {},
          int slow_link = -1)
      : plan(shaped(shape, schedule)), graph(weighted(2 * static_cast<int>(shape.replicas.size()) * shape.chunks)) {
    int devices = 0;
    for (const int r : shape.replicas) devices += r * shape.pipelines;
    speeds.resize(static_cast<std::size_t>(devices), 1.0);
    cluster.emplace(testing_support::machine(speeds));
    std::vector<double> seconds;
    for (std::int64_t op = 0; op < graph.size(); ++op) seconds.push_back(1.0 + static_cast<double>(op % 3));
    cost = std::make_unique<FarCost>(*cluster, seconds);
    cost->slow_link = slow_link;
    problem.graph = &graph;
    problem.cluster = &*cluster;
    problem.cost = cost.get();
    problem.batch = batch;
    problem.schedule = schedule;
    costs = costs_of(*cost, *cluster, 4);
  }

  FoldedPlan fold(const sim::Options& options = {}, const std::vector<sim::Straggler>& stragglers = {}) const {
    return fold_plan(plan, graph, problem.batch, *cluster, costs, options, stragglers);
  }

  // \returns how many ranks were simulated.
  std::size_t expect_equal(const sim::Options& options = {}, const std::vector<sim::Straggler>& stragglers = {}) const {
    const FoldedPlan folded = fold(options, stragglers);
    const plan::AnalyticBytes bytes(graph, problem.sizes);
    const auto program_of = [&](const FoldedPlan& of) {
      return lower(graph, of.plan, fitted_order(of.plan, problem), of.batch, {.hiding = Hiding::backward});
    };
    const Program small = program_of(folded), all = program_of(unfolded(plan, problem.batch));
    const sim::Simulation one =
        unfold(sim::simulate(graph, small, folded_costs(costs, folded), options, folded_stragglers(stragglers, folded)),
               folded);
    const sim::Simulation whole = sim::simulate(graph, all, costs, options, stragglers);
    EXPECT_EQ(one.iteration_time, whole.iteration_time);
    EXPECT_EQ(one.makespan, whole.makespan);
    EXPECT_NEAR(one.bubble_fraction, whole.bubble_fraction, 1e-12);
    EXPECT_EQ(one.busy, whole.busy);
    EXPECT_EQ(one.idle, whole.idle);
    EXPECT_EQ(one.exposed, whole.exposed);
    EXPECT_EQ(one.transfer, whole.transfer);
    EXPECT_EQ(one.peak_live_micro_batches, whole.peak_live_micro_batches);
    const ProgramMemory memory = unfold(program_memory(small, bytes), folded), expected = program_memory(all, bytes);
    for (std::size_t r = 0; r < expected.ranks.size(); ++r) {
      EXPECT_EQ(memory.ranks[r].total(), expected.ranks[r].total()) << r;
    }
    EXPECT_EQ(memory.live_micro_batches, expected.live_micro_batches);
    return folded.device_of.size();
  }

  Plan plan;
  Graph graph;
  std::optional<cluster::Cluster> cluster;
  std::unique_ptr<FarCost> cost;
  plan::Problem problem;
  sim::SimCosts costs;
};

TEST(FoldPlan, TwoOfManyEqualPipelinesStandForAll) {
  for (const schedules::Entry& entry : schedules::registry()) {
    if (entry.placement == schedules::Placement::vee || entry.placement == schedules::Placement::both_ways) continue;
    const int chunks = entry.placement == schedules::Placement::in_turn ? 2 : 1;
    SCOPED_TRACE(entry.name);
    const Folding many({.pipelines = 5, .replicas = {1, 1, 1}, .micro_batches = 6, .chunks = chunks}, entry.name, 60);
    const bool fitted = (entry.capabilities & schedules::kFitsCosts) != 0;
    EXPECT_EQ(many.expect_equal({.iterations = 2}), fitted ? 15u : 6u);
  }
}

TEST(FoldPlan, TwoOfManyEqualReplicasStandForAll) {
  EXPECT_EQ(Folding({.replicas = {4, 4}}, "1f1b", 64).expect_equal(), 4u);
  EXPECT_EQ(Folding({.replicas = {8}, .micro_batches = 1}, "gpipe", 64).expect_equal(), 2u);
  // Rows of a replica of the first stage go to two of the second.
  EXPECT_EQ(Folding({.replicas = {3, 6, 3}}, "gpipe", 24).expect_equal(), 8u);
  EXPECT_EQ(Folding({.pipelines = 3, .replicas = {4, 4}}, "1f1b", 96).expect_equal(), 8u);
  // Rows that cannot be dealt evenly, and replicas whose rows go to several.
  EXPECT_EQ(Folding({.replicas = {4, 4}}, "1f1b", 18).expect_equal(), 8u);
  EXPECT_EQ(Folding({.replicas = {2, 3}}, "1f1b", 24).expect_equal(), 5u);
}

TEST(FoldPlan, PipelinesOfOtherRowsDevicesAndLinksStayApart) {
  // 20 rows for 3 pipelines: 7, 7, 6.
  EXPECT_EQ(Folding({.pipelines = 3, .replicas = {1, 1}, .micro_batches = 2}, "1f1b", 20).expect_equal(), 6u);
  EXPECT_EQ(Folding({.pipelines = 5, .replicas = {1, 1}, .micro_batches = 2}, "1f1b", 22).expect_equal(), 8u);
  const FoldShape four{.pipelines = 4, .replicas = {1, 1}};
  EXPECT_EQ(Folding(four, "1f1b", 32, {1, 1, 1, 0.5}).expect_equal(), 6u);
  EXPECT_EQ(Folding(four, "1f1b", 32, {}, 2).expect_equal(), 6u);
  EXPECT_EQ(Folding({.replicas = {4, 4}}, "1f1b", 32, {1, 0.5}).expect_equal(), 6u);
}

TEST(FoldPlan, AStragglerUnfoldsItsPipelineAlone) {
  const Folding many({.pipelines = 6, .replicas = {1, 1}}, "1f1b", 48);
  EXPECT_EQ(many.expect_equal({}, {{5, 2.0}}), 6u);
  EXPECT_EQ(many.expect_equal({}, {{5, 2.0}, {9, 2.0}, {3, 2.0}, {4, 1.5}}), 10u);
}

TEST(FoldPlan, ChanceAndSharedPortsFoldNothing) {
  const Folding many({.pipelines = 4, .replicas = {1, 1}}, "1f1b", 32);
  EXPECT_TRUE(many.fold().folds());
  EXPECT_TRUE(many.fold({.contention = sim::Contention::fixed}).folds());
  EXPECT_FALSE(many.fold({.contention = sim::Contention::dynamic}).folds());
  EXPECT_FALSE(many.fold({.noise = {.shape = sim::Shape::lognormal, .spread = 0.1}}).folds());
}

}  // namespace
}  // namespace millrace::planner
