// Collectives of tensor-parallel stages pass beside the weight gradients that do not need them.
#include <gmock/gmock.h>

#include "program/lowering.h"
#include "program/stage_dag.h"
#include "program/verifier.h"
#include "schedules/registry.h"
#include "shard/plan_splitter.h"
#include "sim/simulate.h"
#include "tests/program/networks.h"
#include "tests/shard/cut_graph.h"

namespace millrace::sim {
namespace {

using testing::DoubleNear;
using testing::Each;

shard::Annotation columns_of(const std::string& tensor) {
  return {.tensor = tensor, .op = "", .axis = "", .dim = 0, .weights = {}, .where = "test"};
}

// linear0 and linear2 are split by columns, linear1 and linear3 by rows: an all-reduce behind each row-split product in
// the forward, one before linear2 in the backward; the gradient of the data is not wanted.
Program four_products(const Graph& graph, std::int64_t micro_batches, Hiding hiding) {
  Plan plan = test::make_plan(graph, {{.replicas = {2}, .micro_batches = micro_batches}}, "gpipe");
  plan.pipelines[0].stages[0].tensor_parallel = 2;
  plan.pipelines[0].stages[0].shares = {1.0};
  const cluster::Cluster cluster = shard::testing::flat_cluster(2);
  LoweringOptions options{.hiding = hiding};
  const std::vector<shard::Annotation> annotations{columns_of("linear0.weight"), columns_of("linear2.weight")};
  options.parts = shard::PlanSplitter(graph, cluster, {.annotations = annotations, .batch = 4}).parts(plan);
  return lower(graph, plan, schedules::compute_order(plan, make_stage_dag(graph, plan)), 4, options);
}

// Each pass of a product takes 8 s on one device, 4 s as half of it; the loss takes nothing.
SimCosts costs_with(double collective) {
  SimCosts costs = zero_costs();
  costs.compute = [](const Piece& piece) {
    double seconds = 0;
    for (const OpId op : piece.ops) {
      if (op < 4) seconds += piece.kind == InstructionKind::backward ? 16 : 8;
    }
    return Seconds(seconds);
  };
  costs.collective = [collective](InstructionKind, Bytes bytes, std::span<const int>) {
    return Seconds(bytes > 8_B ? collective : 0);
  };
  return costs;
}

Program without_overlap(Program program) {
  for (TensorCollective& collective : program.collectives) collective.beside_weights = false;
  return program;
}

TEST(TensorOverlap, OneCollectiveOfTheBackwardPassesBesideItsWeights) {
  const Graph graph = test::chain(4);
  const Program program = four_products(graph, 1, Hiding::drain);
  EXPECT_TRUE(verify(graph, program).empty());
  std::vector<bool> beside;
  for (const TensorCollective& one : program.collectives) {
    if (one.backward) beside.push_back(one.beside_weights);
  }
  EXPECT_THAT(beside, testing::ElementsAre(true));
}

// 3 s of the 3 s are hidden behind the 4 s of linear2's weight gradient; of 10 s, 4 s are.
TEST(TensorOverlap, WhatIsExposedIsWhatWeightGradientsDoNotCover) {
  const Graph graph = test::chain(4);
  const Program program = four_products(graph, 2, Hiding::drain);
  for (const auto& [collective, hidden] : std::map<double, double>{{3, 3}, {4, 4}, {10, 4}}) {
    SCOPED_TRACE(collective);
    const Simulation with = simulate(graph, program, costs_with(collective));
    const Simulation without = simulate(graph, without_overlap(program), costs_with(collective));
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const auto tensor = static_cast<std::size_t>(Traffic::tensor);
      EXPECT_DOUBLE_EQ(without.exposed[rank][tensor].value(),
                       2 * 3 * collective);  // two in a forward, one in a backward
      EXPECT_DOUBLE_EQ(with.exposed[rank][tensor].value(), 2 * (3 * collective - hidden));
      EXPECT_DOUBLE_EQ(with.transfer[rank][tensor].value(), 2 * 3 * collective);
      EXPECT_DOUBLE_EQ(with.busy[rank].value(), without.busy[rank].value());
    }
    EXPECT_DOUBLE_EQ(without.iteration_time.value() - with.iteration_time.value(), 2 * hidden);
  }
}

// The channel is their own: a long reduction of gradients that has begun inside of the backward delays none of them.
TEST(TensorOverlap, ReductionsOfGradientsDoNotStandInTheWay) {
  const Graph graph = test::chain(4);
  Program program = four_products(graph, 1, Hiding::backward);
  SimCosts costs = costs_with(3);
  const double alone = simulate(graph, program, costs).iteration_time.value();
  costs.reduction = [](Bytes, std::span<const int>) { return 1000_s; };
  const Simulation run = simulate(graph, program, costs);
  EXPECT_DOUBLE_EQ(run.exposed[0][static_cast<std::size_t>(Traffic::tensor)].value(), 2 * 3);
  EXPECT_DOUBLE_EQ(run.busy[0].value(), 4 * 4 * 3);
  EXPECT_GE(run.iteration_time.value(), alone);
}

}  // namespace
}  // namespace millrace::sim
