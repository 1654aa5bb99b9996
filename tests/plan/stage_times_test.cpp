// Node crossings (REPORTS P17), and that sharing work between equal pipelines changes no figure.
#include "plan/stage_times.h"

#include <gtest/gtest.h>

#include "cost/analytic.h"
#include "plan/assignment.h"
#include "plan/evaluator.h"
#include "tests/plan/table_cost.h"

namespace millrace::plan {
namespace {

using testing_support::Case;

// Operators of 1 ms, each with parameters, in a row; some are read again further on.
Graph costs(int size, int skip = 0) {
  GraphBuilder builder("costs");
  std::vector<TensorId> outputs;
  for (int i = 0; i < size; ++i) {
    std::vector<TensorId> inputs;
    if (i > 0) inputs.push_back(outputs.back());
    if (skip > 0 && i >= skip && i % skip == 0) inputs.push_back(outputs[static_cast<std::size_t>(i - skip)]);
    outputs.push_back(builder.add_cost(
        fmt::format("n{}", i), inputs,
        {.forward_s = 1e-3, .backward_input_s = 1e-3, .parameter_bytes = 400, .output_bytes = 64, .saved_bytes = 64}));
  }
  return builder.build();
}

// Nodes of these many equal devices.
cluster::Cluster nodes_of(const std::vector<int>& sizes) {
  std::vector<cluster::Device> devices;
  std::vector<int> node_of;
  std::vector<cluster::Node> nodes;
  for (std::size_t n = 0; n < sizes.size(); ++n) {
    nodes.push_back({fmt::format("node {}", n), {BytesPerSecond(1e10), Seconds(1e-6)}});
    for (int i = 0; i < sizes[n]; ++i) {
      devices.push_back({"d"});
      node_of.push_back(static_cast<int>(n));
    }
  }
  return cluster::Cluster("test", cluster::Kind::described, devices, node_of, nodes,
                          {cluster::Link{BytesPerSecond(1e9), Seconds(1e-5)}});
}

std::vector<StageCut> equal_stages(int ops, int stages, int replicas = 1) {
  std::vector<StageCut> cuts;
  for (int s = 0; s < stages; ++s) {
    StageCut cut{{}, replicas};
    for (OpId op = ops * s / stages; op < ops * (s + 1) / stages; ++op) cut.ops.push_back(op);
    cuts.push_back(std::move(cut));
  }
  return cuts;
}

Problem problem_of(const Graph& graph, const cluster::Cluster& cluster, const cost::CostModel& cost,
                   std::int64_t batch) {
  Problem problem;
  problem.graph = &graph;
  problem.cluster = &cluster;
  problem.cost = &cost;
  problem.batch = batch;
  problem.micro_batches = 4;
  return problem;
}

int crossings(const std::vector<int>& sizes, int pipelines, int stages, int replicas = 1, int skip = 0) {
  const Graph graph = costs(64, skip);
  const cluster::Cluster cluster = nodes_of(sizes);
  const cost::AnalyticCost cost(graph, cluster);
  const Problem problem = problem_of(graph, cluster, cost, 256);
  return plan_times(assign(problem, pipelines, equal_stages(64, stages, replicas)), problem).node_crossings;
}

TEST(NodeCrossings, ConsecutiveStagesFillANodeBeforeTheNext) {
  EXPECT_EQ(crossings({8, 8, 8, 8}, 1, 32), 3);  // REPORTS P17
  EXPECT_EQ(crossings({8, 8, 8, 8}, 4, 8), 0);
  EXPECT_EQ(crossings({8, 8, 8, 8}, 2, 16), 2);
  EXPECT_EQ(crossings({8, 8, 8, 8}, 1, 16, 2), 3);
  EXPECT_EQ(crossings({8, 8, 8, 8}, 1, 4, 8), 3);
}

TEST(NodeCrossings, UnequalNodes) {
  EXPECT_EQ(crossings({3, 5, 8}, 1, 16), 2);
  EXPECT_EQ(crossings({1, 1, 14}, 1, 16), 2);
  EXPECT_EQ(crossings({3, 5, 8}, 2, 8), 1);   // the first pipeline fills two nodes, the second one
  EXPECT_EQ(crossings({3, 13}, 1, 8, 2), 2);  // stage 1 lies on both nodes: its two neighbours are over a border
  EXPECT_EQ(crossings({16}, 1, 16), 0);
}

TEST(NodeCrossings, AreBetweenStagesThatExchangeTensors) {
  // Skips of 8 operators (4 stages) reach from one node of 4 into the next.
  EXPECT_EQ(crossings({4, 4, 4, 4, 4, 4, 4, 4}, 1, 32, 1, 8), 14);  // 7 neighbours and 7 skips
}

// The same plan with lists of its own for every pipeline: nothing to share.
Plan without_sharing(Plan plan) {
  for (Pipeline& pipeline : plan.pipelines) {
    for (Stage& stage : pipeline.stages) stage.ops = std::vector<OpId>(stage.ops.begin(), stage.ops.end());
  }
  return plan;
}

TEST(PlanTimes, SharedListsChangeNoFigure) {
  const Graph graph = costs(48, 5);
  const cluster::Cluster cluster = nodes_of({5, 3, 8});
  const cost::AnalyticCost cost(graph, cluster);
  for (const std::int64_t batch : {64, 67}) {
    const Problem problem = problem_of(graph, cluster, cost, batch);
    for (const int pipelines : {1, 2, 4}) {
      const Plan plan = assign(problem, pipelines, equal_stages(48, 4, 4 / pipelines));
      const PlanReport shared = ClosedFormEvaluator(problem).evaluate(plan);
      const PlanReport own = ClosedFormEvaluator(problem).evaluate(without_sharing(plan));
      EXPECT_EQ(shared.iteration_time_s, own.iteration_time_s);
      EXPECT_EQ(shared.bytes_injected, own.bytes_injected);
      EXPECT_EQ(shared.peak_memory_bytes, own.peak_memory_bytes);
      EXPECT_EQ(shared.mean_memory_bytes, own.mean_memory_bytes);
      EXPECT_EQ(shared.node_crossings, own.node_crossings);
      EXPECT_EQ(shared.bubble_fraction, own.bubble_fraction);
    }
  }
}

TEST(PlanTimes, GradientsAreSummedOverExactlyTheirOwners) {
  // Two pipelines cut differently: n0 n1 | n2 n3 and n0 | n1 n2 n3. n1 is on devices 0 and 3, n0 on 0 and 2, …
  Case c(costs(4), {1, 1, 1, 1}, {1, 1, 1, 1}, 8, 1, 0, 2.0);
  Plan plan = assign(c.problem, 2, equal_stages(4, 2));
  plan.pipelines[1].stages[0].ops = {0};
  plan.pipelines[1].stages[1].ops = {1, 2, 3};
  const PlanTimes times = plan_times(plan, c.problem);
  ASSERT_EQ(times.reductions.size(), 3U);
  EXPECT_EQ(times.reductions[0].devices, (std::vector<int>{0, 2}));
  EXPECT_EQ(times.reductions[0].bytes, 400_B);
  EXPECT_EQ(times.reductions[1].devices, (std::vector<int>{0, 3}));
  EXPECT_EQ(times.reductions[1].bytes, 400_B);
  EXPECT_EQ(times.reductions[2].devices, (std::vector<int>{1, 3}));
  EXPECT_EQ(times.reductions[2].bytes, 800_B);
  EXPECT_EQ(times.stages[0][0].reduction, Seconds(4));
  EXPECT_EQ(times.stages[1][0].reduction, Seconds(2));
}

TEST(PlanTimes, ALargePlanIsAsCheapAsOnePipelineOfIt) {
  // 1,024 pipelines of 20,000 operators: a plan with lists of its own would hold 82 MB, and its evaluation sum 20
  // million operators.
  const Graph graph = costs(20'000);
  const cluster::Cluster cluster = nodes_of(std::vector<int>(128, 8));
  const cost::AnalyticCost cost(graph, cluster);
  const Problem problem = problem_of(graph, cluster, cost, 4096);
  const PlanReport report = ClosedFormEvaluator(problem).evaluate(assign(problem, 1024, equal_stages(20'000, 1)));
  EXPECT_NEAR(report.bottleneck_s, 20'000 * 2e-3, 1e-9);
  EXPECT_EQ(report.stages.size(), 1024U);
}

}  // namespace
}  // namespace millrace::plan
