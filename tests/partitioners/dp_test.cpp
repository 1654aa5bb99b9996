// The dynamic program against brute force over all cuts and replica counts, and REPORTS P08, P18.
#include "partitioners/dp.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <gmock/gmock.h>

#include "plan/assignment.h"
#include "tests/plan/table_cost.h"

namespace millrace::partitioners {
namespace {

using testing_support::Case;
using testing_support::chain;

plan::PlanSet plans(const Case& c) {
  plan::ClosedFormEvaluator evaluate(c.problem);
  return dp(c.problem, config::defaults(dp_options()), evaluate);
}

plan::Candidate best(const Case& c) { return plans(c).best(c.problem.objective); }

// Every way to cut a chain and to deal the devices of one pipeline, in order.
double brute_force(const Case& c, int pipelines) {
  const int devices = c.problem.devices_per_pipeline(pipelines);
  plan::ClosedFormEvaluator evaluate(c.problem);
  double least = INFINITY;
  std::vector<plan::StageCut> cuts;
  const std::function<void(OpId, int)> go = [&](OpId next, int used) {
    if (next == c.graph.size()) {
      const bool counted = !c.problem.stages || *c.problem.stages == static_cast<int>(cuts.size());
      if (used != devices || !counted) return;
      const plan::PlanReport report =
          evaluate.evaluate(plan::assign(c.problem, pipelines, cuts, plan::Shares::by_speed));
      if (report.feasible) least = std::min(least, plan::value_of(c.problem.objective, report));
      return;
    }
    for (OpId end = next + 1; end <= c.graph.size(); ++end) {
      for (int replicas = 1; used + replicas <= devices; ++replicas) {
        plan::StageCut cut;
        for (OpId op = next; op < end; ++op) cut.ops.push_back(op);
        cut.replicas = replicas;
        cuts.push_back(cut);
        go(end, used + replicas);
        cuts.pop_back();
      }
    }
  };
  go(0, 0);
  return least;
}

TEST(Dp, EqualsBruteForceOnTinyChains) {
  const std::vector<std::vector<double>> chains{{1, 2, 3, 4, 5}, {5, 1, 1, 1, 5}, {1, 1, 9, 1, 1, 1}, {2, 2}, {7}};
  for (const auto& times : chains) {
    for (const auto& speeds : {std::vector<double>{1, 1, 1, 1}, std::vector<double>{1, 2, 1, 1}}) {
      for (const std::int64_t m : {1, 2, 6}) {
        for (const char* schedule : {"1f1b", "gpipe"}) {
          for (const auto objective : {plan::Objective::throughput, plan::Objective::bottleneck}) {
            Case c(chain(static_cast<int>(times.size())), speeds, times, 4, m, 0.25);
            c.problem.schedule = schedule;
            c.problem.objective = objective;
            for (const int pipelines : {1, 2}) {
              c.problem.pipelines = pipelines;
              const double least = brute_force(c, pipelines);
              EXPECT_NEAR(plan::value_of(objective, best(c).report), least, 1e-9 * least)
                  << times.size() << " operators, m " << m << ", " << schedule << ", pipelines " << pipelines;
            }
          }
        }
      }
    }
  }
}

TEST(Dp, EqualsBruteForceWithAFixedNumberOfStages) {
  for (int stages = 1; stages <= 4; ++stages) {
    Case c(chain(6), {1, 1, 1, 1}, {3, 1, 4, 1, 5, 9}, 12, 4, 0.1);
    c.problem.pipelines = 1;
    c.problem.stages = stages;
    EXPECT_NEAR(best(c).report.iteration_time_s, brute_force(c, 1), 1e-9) << stages;
  }
}

TEST(Dp, EqualsBruteForceUnderAMemoryLimit) {
  // The limit goes from what the whole chain needs down to where nothing fits. The workspace of a segment is estimated,
  // so the search may refuse what just fits; it never returns what does not.
  Case c(chain(6), {1, 1, 1}, {3, 1, 4, 1, 5, 9}, 3, 6);
  c.problem.pipelines = 1;
  int met = 0, cases = 0;
  for (std::int64_t limit = 400; limit >= 20; limit -= 10) {
    c.problem.memory_limit = Bytes(limit);
    const double least = brute_force(c, 1);
    const plan::PlanSet set = plans(c);
    if (std::isinf(least)) {
      EXPECT_FALSE(set.feasible());
      ASSERT_FALSE(set.candidates().empty());  // the best without a limit, and what it needs
      EXPECT_THAT(set.candidates()[0].report.why_not, testing::HasSubstr("needs"));
      continue;
    }
    ++cases;
    if (!set.feasible()) continue;
    const double ours = set.best(c.problem.objective).report.iteration_time_s;
    EXPECT_GE(ours, least * (1 - 1e-9));
    if (ours <= least * (1 + 1e-9)) ++met;
  }
  EXPECT_GE(cases, 10);
  EXPECT_GE(met, cases - 3);
}

TEST(Dp, GiantOperatorIsNamedAndMayBeReplicated) {
  Case pure(chain(7), {1, 1, 1, 1}, {1, 1, 1, 20, 1, 1, 1}, 4);
  pure.problem.pipelines = 1;
  pure.problem.stages = 4;
  pure.problem.objective = plan::Objective::bottleneck;
  const plan::Candidate cut = best(pure);
  EXPECT_NEAR(cut.report.bottleneck_s, 20, 1e-9);
  EXPECT_EQ(cut.report.limiting_op, "n3");
  EXPECT_NEAR(*cut.report.optimality_gap, 0, 1e-9);

  Case hybrid(chain(5), std::vector<double>(6, 1.0), {1, 1, 20, 1, 1}, 6);
  hybrid.problem.objective = plan::Objective::bottleneck;
  hybrid.problem.pipelines = 1;
  const plan::Candidate all = best(hybrid);
  EXPECT_NEAR(all.report.bottleneck_s, 4, 1e-9);
  EXPECT_EQ(all.plan.pipelines[0].stages.size(), 1U);
  EXPECT_EQ(all.report.limiting_op, "n2");
}

TEST(Dp, SpeedAndMemoryOfADeviceAreApart) {
  for (const int nodes : {8, 9}) {
    Case c(chain(nodes), {1, 2}, std::vector<double>(static_cast<std::size_t>(nodes), 1.0), 2, 4);
    c.problem.pipelines = 1;
    c.problem.stages = 2;
    c.problem.objective = plan::Objective::bottleneck;
    const plan::Candidate candidate = best(c);
    EXPECT_NEAR(candidate.report.bottleneck_s, 3, 1e-9) << nodes;
    EXPECT_EQ(candidate.plan.pipelines[0].stages[1].ops.size(), 6U);
  }
}

TEST(Dp, AFastDeviceWithLittleRoomTakesWhatFits) {
  Case c(chain(8), {1, 2}, std::vector<double>(8, 1.0), 2, 4);
  const auto need = [&](OpId first) {
    std::vector<OpId> ops;
    for (OpId op = first; op < 8; ++op) ops.push_back(op);
    return plan::stage_memory(plan::AnalyticBytes(c.graph, c.problem.sizes).footprint(ops, 2), 1).total();
  };
  ASSERT_LT(need(4), need(3));
  c.cluster = testing_support::machine({1, 2}, {Bytes(1 << 20), need(4)});
  c.problem.pipelines = 1;
  c.problem.stages = 2;
  c.problem.objective = plan::Objective::bottleneck;
  const plan::Candidate candidate = best(c);
  ASSERT_TRUE(candidate.report.feasible) << candidate.report.why_not;
  EXPECT_EQ(candidate.plan.pipelines[0].stages[1].ops.size(), 4U);
  EXPECT_NEAR(candidate.report.bottleneck_s, 4, 1e-9);
}

TEST(Dp, ReductionMovesWorkFromReplicasToStages) {
  // With free reduction one replicated stage wins; a dear one makes the chain a pipeline.
  GraphBuilder builder("linears");
  TensorId x = builder.input("x", {Dims{1}});
  for (int i = 0; i < 4; ++i) {
    x = builder.add({.name = fmt::format("fc{}", i), .kind = "linear", .inputs = {x},
                     .attributes = {{"out_features", std::int64_t{1}}}});
  }
  const Graph graph = builder.build();
  Case cheap(graph, {1, 1, 1, 1}, {4, 4, 4, 4}, 4, 8), dear(graph, {1, 1, 1, 1}, {4, 4, 4, 4}, 4, 8, 0, 100);
  cheap.problem.pipelines = dear.problem.pipelines = 1;
  EXPECT_EQ(best(cheap).plan.pipelines[0].stages.size(), 1U);
  EXPECT_EQ(best(dear).plan.pipelines[0].stages.size(), 4U);
}

TEST(Dp, LargeGraphsAreThinnedAndStayNearTheBound) {
  std::vector<double> times;
  for (int i = 0; i < 300; ++i) times.push_back(1.0 + (i * 37 % 11) * 0.1);
  Case c(chain(300), std::vector<double>(16, 1.0), times, 16, 16, 1e-4, 1e4);
  c.problem.objective = plan::Objective::bottleneck;
  c.problem.pipelines = 1;
  c.problem.stages = 16;
  EXPECT_LE(*best(c).report.optimality_gap, 0.06);
}

TEST(Dp, AnExpiredTimeLimitIsSaid) {
  Case c(chain(6), {1, 1}, {1, 1, 1, 1, 1, 1}, 2);
  config::Values options = config::defaults(dp_options());
  options.set("time_limit", Seconds(-1));
  plan::ClosedFormEvaluator evaluate(c.problem);
  const plan::PlanSet set = dp(c.problem, options, evaluate);
  EXPECT_TRUE(set.candidates().empty());
  EXPECT_EQ(set.refusals().at(0).reason, plan::Refusal::time_limit);
}

}  // namespace
}  // namespace millrace::partitioners
