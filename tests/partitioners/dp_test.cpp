// The dynamic program against brute force over all cuts, replicas and devices, and REPORTS P06, P08, P18, M01.
#include "partitioners/dp.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>

#include "partitioners/common/cluster_order.h"
#include "partitioners/hippie.h"
#include "plan/assignment.h"
#include "plan/validate.h"
#include "tests/partitioners/brute_force.h"
#include "tests/partitioners/random_graphs.h"
#include "tests/plan/cost_case.h"
#include "tests/plan/table_cost.h"

namespace millrace::partitioners {
namespace {

using plan::Objective;
using testing_support::BruteForce;
using testing_support::Case;
using testing_support::chain;
using testing_support::cost_chain;
using testing_support::CostCase;
using testing_support::Machine;
using testing_support::random_graph;

plan::PlanSet plans(const plan::Problem& problem, const std::string& order = "best") {
  config::Values options = config::defaults(dp_options());
  options.set("order", order);
  plan::ClosedFormEvaluator evaluate(problem);
  return dp(problem, options, evaluate);
}

plan::Candidate best(const plan::Problem& problem) { return plans(problem).best(problem.objective); }

void expect_equal(const plan::Problem& problem, const plan::PlanSet& found, const std::optional<plan::Candidate>& least,
                  const std::string& where) {
  if (!least) {
    EXPECT_FALSE(found.feasible()) << where;
    return;
  }
  ASSERT_TRUE(found.feasible()) << where << ": brute force finds " << least->report.iteration_time_s << " s";
  const plan::Candidate& ours = found.best(problem.objective);
  EXPECT_TRUE(plan::validate(ours.plan, *problem.graph, {problem.cluster->size(), problem.batch}).empty()) << where;
  const double value = plan::value_of(problem.objective, least->report);
  EXPECT_NEAR(plan::value_of(problem.objective, ours.report), value, 1e-9 * std::abs(value)) << where;
  if (problem.objective == Objective::communication) {
    EXPECT_NEAR(ours.report.iteration_time_s, least->report.iteration_time_s, 1e-9 * least->report.iteration_time_s)
        << where;
  }
}

const Machine kEqual{.speeds = {1, 1, 1, 1}, .link = {BytesPerSecond(8), Seconds(0.125)}};
const Machine kMixed{.speeds = {1, 2, 1, 2}, .link = {BytesPerSecond(8), Seconds(0.125)}};

TEST(Dp, EqualsBruteForceOnChains) {
  for (const Machine& machine : {kEqual, kMixed}) {
    for (const std::int64_t m : {1, 2, 6}) {
      for (const char* schedule : {"1f1b", "gpipe"}) {
        for (const Objective objective :
             {Objective::throughput, Objective::bottleneck, Objective::communication, Objective::memory_efficiency}) {
          for (const auto& times :
               {std::vector<double>{1, 2, 3, 4, 5}, {5, 1, 1, 1, 5}, {1, 1, 9, 1, 1}, {2, 2}, {7}}) {
            CostCase c(cost_chain(times, 3, 8, 5), machine, 4 * m, m);
            c.problem.schedule = schedule;
            c.problem.objective = objective;
            c.problem.pipelines = 1;
            BruteForce brute(c.problem, 1);
            expect_equal(c.problem, plans(c.problem), brute.best(topological_order(c.graph, TieBreak::depth_first)),
                         fmt::format("{} operators, m {}, {}, {}", times.size(), m, schedule, plan::name(objective)));
          }
        }
      }
    }
  }
}

TEST(Dp, EqualsBruteForceOnOrdersOfRandomGraphs) {
  int seed = 0;
  for (const Machine& machine : {kEqual, kMixed}) {
    for (const char* schedule : {"1f1b", "gpipe"}) {
      for (const Objective objective : {Objective::throughput, Objective::bottleneck, Objective::communication}) {
        for (int repeat = 0; repeat < 4; ++repeat) {
          const auto draw = static_cast<std::uint64_t>(++seed);
          CostCase c(random_graph(3 + seed % 4, draw, 2 + seed % 3), machine, 6, 1 + seed % 3);
          c.problem.schedule = schedule;
          c.problem.objective = objective;
          c.problem.pipelines = 1;
          const std::string where = fmt::format("graph {}, {}, {}", draw, schedule, plan::name(objective));
          BruteForce brute(c.problem, 1);
          for (const Order& order : topological_orders(c.graph)) brute.best(order);
          const auto& least = brute.best(topological_order(c.graph, TieBreak::depth_first));
          expect_equal(c.problem, plans(c.problem, "topological"), least, where);

          const std::vector<double> speeds = plan::device_speeds(c.problem);
          std::vector<double> times;
          for (OpId op = 0; op < c.graph.size(); ++op) times.push_back(c.cost.op_time(op, 1, 0).total().value());
          const double total = std::accumulate(times.begin(), times.end(), 0.0);
          const ClusterOrder clustered = cluster_order(c.graph, successors(c.graph), times, 0.5 * total / 4);
          BruteForce by_items(c.problem, 1);
          expect_equal(c.problem, plans(c.problem, "cluster"), by_items.best(clustered.order, clustered.item_ends),
                       where + ", cluster order");
        }
      }
    }
  }
}

TEST(Dp, EqualsBruteForceInEveryNumberOfPipelinesAndStages) {
  for (const int pipelines : {1, 2, 4}) {
    for (int stages = 0; stages <= 4 / pipelines; ++stages) {
      for (const Objective objective : {Objective::throughput, Objective::bottleneck}) {
        CostCase c(cost_chain({3, 1, 4, 1, 5, 9}, 2, 12, 5), kEqual, 16, 4);
        c.problem.objective = objective;
        c.problem.pipelines = pipelines;
        if (stages > 0) c.problem.stages = stages;
        BruteForce brute(c.problem, pipelines);
        expect_equal(c.problem, plans(c.problem), brute.best(topological_order(c.graph, TieBreak::depth_first)),
                     fmt::format("{} pipelines, {} stages", pipelines, stages));
      }
    }
  }
}

// The limit goes from what the whole graph needs down to where nothing fits.
TEST(Dp, EqualsBruteForceUnderAMemoryLimit) {
  for (const auto recompute : {plan::Recompute::none, plan::Recompute::automatic}) {
    for (const char* schedule : {"1f1b", "gpipe"}) {
      for (std::uint64_t seed = 0; seed < 3; ++seed) {
        for (const Machine& machine : {Machine{{1, 1, 1}, {}, kEqual.link}, Machine{{1, 2, 1}, {}, kEqual.link}}) {
          CostCase c(seed == 0 ? cost_chain({3, 1, 4, 1, 5, 9}, 2, 4, 30) : random_graph(5, seed, 2), machine, 6, 6);
          c.problem.schedule = schedule;
          c.problem.recompute = recompute;
          c.problem.pipelines = 1;
          int fits = 0;
          for (std::int64_t limit = 4000; limit >= 20; limit = limit * 5 / 6) {
            c.problem.memory_limit = Bytes(limit);
            BruteForce brute(c.problem, 1);
            std::optional<plan::Candidate> least;
            for (const Order& order : topological_orders(c.graph)) least = brute.best(order);
            fits += least ? 1 : 0;
            expect_equal(c.problem, plans(c.problem, "topological"), least,
                         fmt::format("graph {}, {}, limit {}", seed, schedule, limit));
          }
          EXPECT_GT(fits, 3);
          const plan::PlanSet none = plans(c.problem);
          ASSERT_FALSE(none.candidates().empty());  // what it needs
          EXPECT_FALSE(none.feasible());
          EXPECT_THAT(none.candidates()[0].report.why_not, testing::HasSubstr("needs"));
        }
      }
    }
  }
}

TEST(Dp, TheMemoryThatAnInfeasiblePlanNeedsIsEnough) {
  CostCase c(cost_chain({3, 1, 4, 1, 5, 9}, 2, 4, 30), kEqual, 6, 6);
  c.problem.memory_limit = Bytes(20);
  const plan::PlanReport none = best(c.problem).report;
  ASSERT_FALSE(none.feasible);
  c.problem.memory_limit = Bytes(none.peak_memory_bytes);
  EXPECT_TRUE(best(c.problem).report.feasible);
}

TEST(Dp, RecomputeIsBalancedAndGainsNothingOnALastStageThatKeepsOneMicroBatch) {
  // F = 1, B = 2 for each operator: 4 s where it is recomputed, 3 s on the last stage of 1f1b.
  CostCase c(cost_chain(std::vector<double>(7, 3.0), 1, 0, 8), {.speeds = {1, 1}}, 8, 8);
  c.problem.pipelines = 1;
  c.problem.stages = 2;
  c.problem.recompute = plan::Recompute::all;
  const plan::Candidate candidate = best(c.problem);
  const auto& stages = candidate.plan.pipelines[0].stages;
  EXPECT_EQ(stages[0].ops.size(), 3U);  // 3 · 4 against 4 · 3
  EXPECT_EQ(stages[0].recompute, stages[0].ops);
  EXPECT_TRUE(stages[1].recompute.empty());
  EXPECT_NEAR(candidate.report.bottleneck_s, 12, 1e-9);
  c.problem.schedule = "gpipe";  // all micro-batches are alive on the last stage too
  EXPECT_FALSE(best(c.problem).plan.pipelines[0].stages[1].recompute.empty());
}

TEST(Dp, WeightsThatUsersGive) {  // REPORTS P06
  CostCase c(cost_chain({0, 2, 0, 1, 1, 1, 1, 0, 0, 2, 0}), {.speeds = {1, 1, 1, 1}}, 1, 1);
  c.problem.pipelines = 1;
  c.problem.stages = 4;
  c.problem.objective = Objective::bottleneck;
  EXPECT_NEAR(best(c.problem).report.bottleneck_s, 2, 1e-9);
}

TEST(Dp, GiantOperatorIsNamedAndMayBeReplicated) {  // REPORTS P08
  CostCase pure(cost_chain({1, 1, 1, 20, 1, 1, 1}), {.speeds = {1, 1, 1, 1}}, 1, 1);
  pure.problem.pipelines = 1;
  pure.problem.stages = 4;
  pure.problem.objective = Objective::bottleneck;
  const plan::Candidate cut = best(pure.problem);
  EXPECT_NEAR(cut.report.bottleneck_s, 20, 1e-9);
  EXPECT_EQ(cut.report.limiting_op, "n3");
  EXPECT_NEAR(*cut.report.optimality_gap, 0, 1e-9);

  for (const std::optional<int> pipelines : {std::optional<int>(1), std::optional<int>()}) {
    CostCase hybrid(cost_chain({1.0 / 6, 1.0 / 6, 20.0 / 6, 1.0 / 6, 1.0 / 6}), {.speeds = std::vector<double>(6, 1.0)},
                    6, 1);
    hybrid.problem.objective = Objective::bottleneck;
    hybrid.problem.pipelines = pipelines;
    const plan::Candidate all = best(hybrid.problem);
    EXPECT_NEAR(all.report.bottleneck_s, 4, 1e-9);
    EXPECT_EQ(all.plan.pipelines[0].stages.size(), 1U);
    EXPECT_EQ(all.report.limiting_op, "n2");
    EXPECT_NEAR(*all.report.optimality_gap, 0, 1e-9);
  }
}

TEST(Dp, SpeedAndMemoryOfADeviceAreApart) {  // REPORTS P18
  for (const auto& speeds : {std::vector<double>{1, 2}, {2, 1}}) {
    for (const int nodes : {8, 9}) {
      CostCase c(cost_chain(std::vector<double>(static_cast<std::size_t>(nodes), 1.0)), {.speeds = speeds}, 4, 4);
      c.problem.pipelines = 1;
      c.problem.stages = 2;
      c.problem.objective = Objective::bottleneck;
      const plan::Candidate candidate = best(c.problem);
      EXPECT_NEAR(candidate.report.bottleneck_s, 3, 1e-9) << nodes;
      for (const Stage& stage : candidate.plan.pipelines[0].stages) {
        const bool fast = c.cluster.device(stage.devices[0]).speed == 2;
        if (nodes == 9) {
          EXPECT_EQ(stage.ops.size(), fast ? 6U : 3U);
        }
      }
    }
    // Room for four of eight nodes on the fast device.
    std::vector<Bytes> memory;
    for (const double speed : speeds) memory.push_back(Bytes(speed == 2 ? 4 * 20 : 1000));
    CostCase c(cost_chain(std::vector<double>(8, 1.0), 0, 10), {speeds, memory}, 4, 4);
    c.problem.pipelines = 1;
    c.problem.stages = 2;
    c.problem.objective = Objective::bottleneck;
    const plan::Candidate candidate = best(c.problem);
    ASSERT_TRUE(candidate.report.feasible) << candidate.report.why_not;
    EXPECT_NEAR(candidate.report.bottleneck_s, 4, 1e-9);
  }
}

TEST(Dp, MemoryIsCountedStageByStage) {  // REPORTS M01: 4 equal stages, activation 100, m = 8, no weights
  const Machine four{.speeds = {1, 1, 1, 1}};
  CostCase c(cost_chain({1, 1, 1, 1}, 0, 0, 100), four, 8, 8);
  c.problem.pipelines = 1;
  c.problem.stages = 4;
  const auto memory = [&] {
    std::vector<std::int64_t> bytes;
    for (const plan::StageReport& stage : best(c.problem).report.stages) bytes.push_back(stage.memory_bytes);
    return bytes;
  };
  EXPECT_THAT(memory(), testing::ElementsAre(400, 300, 200, 100));
  c.problem.memory_limit = Bytes(400);
  EXPECT_TRUE(best(c.problem).report.feasible);
  c.problem.memory_limit = Bytes(350);
  const plan::PlanReport refused = best(c.problem).report;
  EXPECT_FALSE(refused.feasible);
  EXPECT_THAT(refused.why_not, testing::HasSubstr("stage 0"));
  c.problem.stages.reset();  // or balanced anew: two stages of two replicas keep 2 · 2 · 100 / … rows
  EXPECT_TRUE(best(c.problem).report.feasible || !best(c.problem).report.why_not.empty());
  c.problem.stages = 4;
  c.problem.memory_limit.reset();
  c.problem.schedule = "gpipe";
  EXPECT_THAT(memory(), testing::ElementsAre(800, 800, 800, 800));
}

TEST(Dp, ReductionMovesWorkFromReplicasToStages) {
  // With free reduction one replicated stage wins; a dear one makes the chain a pipeline.
  CostCase cheap(cost_chain({1, 1, 1, 1}, 0, 4), {.speeds = {1, 1, 1, 1}}, 32, 8);
  CostCase dear(cost_chain({1, 1, 1, 1}, 0, 4), {.speeds = {1, 1, 1, 1}, .link = {BytesPerSecond(0.01), Seconds(0)}},
                32, 8);
  cheap.problem.pipelines = dear.problem.pipelines = 1;
  EXPECT_EQ(best(cheap.problem).plan.pipelines[0].stages.size(), 1U);
  EXPECT_EQ(best(dear.problem).plan.pipelines[0].stages.size(), 4U);
}

TEST(Dp, TheClusterOrderWinsWhereBranchesAreInterleaved) {
  // Two long branches declared operator by operator in turn: depth-first orders keep them together as well, so both
  // reports name an order, and neither is worse than the other alone.
  for (std::uint64_t seed = 1; seed < 6; ++seed) {
    CostCase c(random_graph(30, seed, 8), kEqual, 8, 4);
    c.problem.pipelines = 1;
    const double topological = plans(c.problem, "topological").best(c.problem.objective).report.iteration_time_s;
    const double cluster = plans(c.problem, "cluster").best(c.problem.objective).report.iteration_time_s;
    const plan::PlanReport both = best(c.problem).report;
    EXPECT_NEAR(both.iteration_time_s, std::min(topological, cluster), 2e-3 * topological);
    EXPECT_THAT(both.order, testing::AnyOf("topological", "cluster"));
  }
}

TEST(Dp, ALargeChainComesNearItsBound) {
  std::vector<double> times;
  for (int i = 0; i < 300; ++i) times.push_back(1.0 + (i * 37 % 11) * 0.1);
  CostCase c(cost_chain(times, 1, 4), {std::vector<double>(16, 1.0), {}, {BytesPerSecond(1e3), Seconds(1e-4)}}, 16, 16);
  c.problem.objective = Objective::bottleneck;
  c.problem.pipelines = 1;
  c.problem.stages = 16;
  EXPECT_LE(*best(c.problem).report.optimality_gap, 0.06);
}

TEST(Dp, AnExpiredTimeLimitIsSaid) {
  CostCase c(cost_chain({1, 1, 1, 1, 1, 1}), {.speeds = {1, 1}}, 2, 1);
  config::Values options = config::defaults(dp_options());
  options.set("time_limit", Seconds(-1));
  plan::ClosedFormEvaluator evaluate(c.problem);
  const plan::PlanSet set = dp(c.problem, options, evaluate);
  ASSERT_EQ(set.candidates().size(), 1U);
  EXPECT_TRUE(set.feasible());
  EXPECT_EQ(set.candidates()[0].report.stopped_by, "time");
  EXPECT_EQ(set.refusals().at(0).reason, plan::Refusal::time_limit);
}

}  // namespace
}  // namespace millrace::partitioners
