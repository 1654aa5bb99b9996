// What --explain says, to the letter: the numbers are those that a user checks by hand.
#include "planner/explain.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "plan/assignment.h"
#include "plan/evaluator.h"
#include "tests/plan/table_cost.h"

namespace millrace::planner {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using testing_support::Case;
using testing_support::chain;

Plan assigned(const plan::Problem& problem) {
  std::vector<plan::StageCut> cuts;
  for (OpId op = 0; op < problem.graph->size(); ++op) cuts.push_back({{op}, 1});
  return plan::assign(problem, 1, cuts);
}

plan::PlanReport one_each(const plan::Problem& problem) {
  return plan::ClosedFormEvaluator(problem).evaluate(assigned(problem));
}

TEST(Explain, TheGiantOperatorIsTheBottleneck) {  // REPORTS P08
  Case c(chain(7), std::vector<double>(4, 1.0), {1, 1, 1, 20, 1, 1, 1}, 1);
  const std::vector<plan::StageCut> cuts{{{0, 1, 2}, 1}, {{3}, 1}, {{4, 5}, 1}, {{6}, 1}};
  const plan::PlanReport report = plan::ClosedFormEvaluator(c.problem).evaluate(plan::assign(c.problem, 1, cuts));
  EXPECT_EQ(bottleneck_line(report),
            "bottleneck: n3 (stage 1 of pipeline 0: 20.00 s for a micro-batch, 100 % of its compute in this operator)");
}

TEST(Explain, EvenStagesGiveTheFormOfFillAndSteadyState) {  // METHODS 2: p = 4, m = 8, F = 1, B = 2
  Case c(chain(4), {1, 1, 1, 1}, {3, 3, 3, 3}, 1, 8);
  for (const char* schedule : {"1f1b", "gpipe"}) {
    c.problem.schedule = schedule;
    EXPECT_THAT(arithmetic(one_each(c.problem)),
                ElementsAre("iteration: (m + p - 1) (F + B) = (8 + 4 - 1) x (1 s + 2 s) = 33 s"));
  }
}

TEST(Explain, UnevenStagesGiveSumAndSlowest) {
  Case c(chain(3), {1, 1, 1}, {3, 6, 3}, 1, 5);
  EXPECT_THAT(arithmetic(one_each(c.problem)),
              ElementsAre("iteration: sum(F + B) + (m - 1) max(F + B) = 12 s + 4 x 6 s = 36 s"));
  c.problem.schedule = "gpipe";
  EXPECT_THAT(arithmetic(one_each(c.problem)),
              ElementsAre("iteration: sum(F + B) + (m - 1) (max F + max B) = 12 s + 4 x (2 s + 4 s) = 36 s"));
}

TEST(Explain, TransfersArePartOfTheStagesThatTheyReach) {
  Case c(chain(2), {1, 1}, {3, 3}, 1, 4, 0.5);
  EXPECT_THAT(arithmetic(one_each(c.problem)),
              ElementsAre("iteration: sum(F + B) + (m - 1) max(F + B) = 7 s + 3 x 4 s = 19 s"));
}

TEST(Explain, ReductionThatNothingHidesIsAdded) {
  GraphBuilder builder("one");
  const TensorId x = builder.input("x", {Dims{1}});
  builder.add({.name = "a", .kind = "linear", .inputs = {x}, .attributes = {{"out_features", std::int64_t{1}}}});
  Case c(builder.build(), {1, 1}, {6}, 2, 2, 0, 1.5);
  const std::vector<plan::StageCut> cuts{{{0}, 2}};
  const plan::PlanReport report = plan::ClosedFormEvaluator(c.problem).evaluate(plan::assign(c.problem, 1, cuts));
  EXPECT_THAT(arithmetic(report), ElementsAre("iteration: (m + p - 1) (F + B) = (2 + 1 - 1) x (1 s + 2 s) + 1.5 s of "
                                              "gradient reduction that nothing hides = 7.5 s"));
}

TEST(Explain, ObjectivesOtherThanTimeAreShownFromTheirParts) {
  Case c(chain(4), {1, 1, 1, 1}, {3, 3, 3, 3}, 2, 8);
  c.problem.objective = plan::Objective::bottleneck;
  EXPECT_EQ(arithmetic(one_each(c.problem)).at(1), "bottleneck: 1.5 s/sample = 8 micro-batches x 3 s / 16 samples");
  c.problem.objective = plan::Objective::communication;
  EXPECT_THAT(arithmetic(one_each(c.problem)).at(1), StartsWith("communication: 384 bytes"));
  c.problem.objective = plan::Objective::memory_efficiency;
  EXPECT_THAT(arithmetic(one_each(c.problem)).at(1), HasSubstr("= 0.484848485 samples/s / "));
}

TEST(Explain, PublishedObjectivesAreInTheUnitsOfTheirFiles) {
  Case c(chain(2), {1, 1}, {3, 3}, 2, 4);
  plan::PlanReport report = one_each(c.problem);
  report.objective = "max_load";
  report.objective_value = 92.4;
  report.objective_unit = "unit of the file";
  report.bottleneck_s = 92.4;
  report.peak_memory_bytes = 0;
  EXPECT_EQ(bottleneck_line(report),
            "bottleneck: n0 (stage 0 of pipeline 0: 92.4 unit of the file by the published formula)");
  const Table plans = plans_table({{assigned(c.problem), report}});
  EXPECT_THAT(plans.rows[0], Contains("92.4 unit of the file"));
  EXPECT_EQ(std::count(plans.rows[0].begin(), plans.rows[0].end(), "-"), 4);  // time, samples, bubble, memory
  EXPECT_EQ(stages_table(report, c.graph).rows[0].back(), "-");
}

TEST(Explain, ThePlanSaysHowItWasFound) {
  plan::PlanReport report;
  report.partitioner = "dp";
  report.order = "cluster";
  report.stopped_by = "complete";
  report.planning_time_s = 0.25;
  EXPECT_EQ(search_line(report), "search: dp, order cluster, complete in 250.00 ms");
  report.order = "";
  report.stopped_by = "time";
  report.certificate = "the best of all plans: 24 s";
  EXPECT_EQ(search_line(report), "search: dp, stopped by time in 250.00 ms; found the best of all plans: 24 s");
}

TEST(Explain, BoundNamesItsSourceAndTheGap) {
  plan::PlanReport report;
  report.objective_unit = "s";
  EXPECT_EQ(bound_line(report), "bound: none is known");
  report.bound = 24;
  report.bound_source = "work / speed";
  report.optimality_gap = 0.375;
  EXPECT_EQ(bound_line(report), "bound: 24 s (work / speed); gap 37.5 %");
}

TEST(Explain, InputsAreShownInBaseUnits) {  // REPORTS P16: 25 GB/s inside, 25 Gb/s between
  const cluster::Device device{"v100", {{"fp32", FlopsPerSecond(15.7e12)}}, 16_GiB, BytesPerSecond(9e11)};
  const cluster::Link inside{BytesPerSecond(2.5e10), Seconds(1e-5)};
  const cluster::Cluster cluster("two nodes", cluster::Kind::described, {device, device, device, device}, {0, 0, 1, 1},
                                 {{"node 0", inside}, {"node 1", inside}},
                                 {cluster::Link{BytesPerSecond(3.125e9), Seconds(3e-5)}});
  const Table table = inputs_table(chain(3), cluster, 128, 4, 12_GiB);
  EXPECT_THAT(table.rows, Contains(ElementsAre("inside node 0", "2.5e10 B/s, latency 1e-05 s")));
  EXPECT_THAT(table.rows, Contains(ElementsAre("between nodes", "3.125e9 B/s, latency 3e-05 s, oversubscription 1")));
  EXPECT_THAT(table.rows, Contains(ElementsAre("4 x v100", HasSubstr("fp32 1.57e13 FLOP/s, memory 17179869184 B"))));
  EXPECT_THAT(table.rows, Contains(ElementsAre("memory limit", HasSubstr("12884901888 B"))));
}

TEST(Explain, ShortestNumbersReadBack) {
  EXPECT_EQ(shortest(2.5e10), "2.5e10");
  EXPECT_EQ(shortest(3.125e9), "3.125e9");
  EXPECT_EQ(shortest(1), "1");
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(shortest(1e-5), "1e-05");
  for (const double value : {1.0 / 3, 26843545600.0, 1e300, 123456789.125}) {
    EXPECT_EQ(std::stod(shortest(value)), value);
  }
}

}  // namespace
}  // namespace millrace::planner
