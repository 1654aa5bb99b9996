// REPORTS M01 and the kinds of memory of a stage, against counts by hand.
#include "plan/memory.h"

#include <gtest/gtest.h>

#include "plan/assignment.h"
#include "plan/evaluator.h"
#include "tests/plan/table_cost.h"

namespace millrace::plan {
namespace {

using testing_support::Case;
using testing_support::chain;

// linear 3 → 5 (20 weights, saves its input), relu (saves its output), linear 5 → 2 (12 weights).
Graph mlp() {
  GraphBuilder builder("mlp");
  TensorId x = builder.input("x", {Dims{3}});
  x = builder.add({.name = "a", .kind = "linear", .inputs = {x}, .attributes = {{"out_features", std::int64_t{5}}}});
  x = builder.add({.name = "r", .kind = "relu", .inputs = {x}});
  builder.add({.name = "b", .kind = "linear", .inputs = {x}, .attributes = {{"out_features", std::int64_t{2}}}});
  return builder.build();
}

TEST(AnalyticBytes, KindsOfTheFirstStage) {
  const Graph graph = mlp();
  const AnalyticBytes bytes(graph, {4, 8});
  const std::vector<OpId> ops{0, 1};
  const StageFootprint stage = bytes.footprint(ops, 10);
  EXPECT_EQ(stage.weights, Bytes(20 * 4));
  EXPECT_EQ(stage.gradients, Bytes(20 * 4));
  EXPECT_EQ(stage.optimizer, Bytes(20 * 8));
  EXPECT_EQ(stage.per_slot, Bytes(10 * (3 + 5) * 4));   // the input; relu's output, which is sent too
  EXPECT_EQ(stage.workspace, Bytes(10 * (5 + 5) * 4));  // gradients of both outputs
  EXPECT_EQ(stage.messages, Bytes(10 * 3 * 5 * 4));     // sent once, its gradient received in a window of two
}

TEST(AnalyticBytes, WholeModelHasNoMessages) {
  const Graph graph = mlp();
  const AnalyticBytes bytes(graph, {8, 0});
  const std::vector<OpId> ops{0, 1, 2};
  const StageFootprint stage = bytes.footprint(ops, 1);
  EXPECT_EQ(stage.weights, Bytes(32 * 8));
  EXPECT_EQ(stage.messages, Bytes(0));
  EXPECT_EQ(stage.per_slot, Bytes((3 + 5) * 8));
}

TEST(StageMemory, LiveMicroBatchesDifferByStageAndSchedule) {
  // Four equal stages of 25 relus on one number: activations per micro-batch are alike but for the first input.
  Case c(chain(100), {1, 1, 1, 1}, std::vector<double>(100, 1.0), 1, 8);
  std::vector<StageCut> cuts(4);
  for (OpId op = 0; op < 100; ++op) cuts[static_cast<std::size_t>(op / 25)].ops.push_back(op);
  for (const auto& [schedule, live] : {std::pair{"1f1b", std::vector<std::int64_t>{4, 3, 2, 1}},
                                       std::pair{"gpipe", std::vector<std::int64_t>{8, 8, 8, 8}}}) {
    c.problem.schedule = schedule;
    const PlanReport report = ClosedFormEvaluator(c.problem).evaluate(assign(c.problem, 1, cuts));
    for (std::size_t s = 0; s < 4; ++s) {
      EXPECT_EQ(report.stages[s].live_micro_batches, live[s]);
      EXPECT_EQ(report.stages[s].memory.activations, Bytes(live[s] * 26 * 4));
    }
  }
}

TEST(StageMemory, ALimitBelowTheNeedNamesTheStageAndTheNeed) {
  Case c(chain(100), {1, 1, 1, 1}, std::vector<double>(100, 1.0), 1, 8);
  std::vector<StageCut> cuts(4);
  for (OpId op = 0; op < 100; ++op) cuts[static_cast<std::size_t>(op / 25)].ops.push_back(op);
  const Plan plan = assign(c.problem, 1, cuts);
  const PlanReport free = ClosedFormEvaluator(c.problem).evaluate(plan);
  EXPECT_TRUE(free.feasible);
  c.problem.memory_limit = Bytes(free.peak_memory_bytes);
  EXPECT_TRUE(ClosedFormEvaluator(c.problem).evaluate(plan).feasible);
  c.problem.memory_limit = Bytes(free.peak_memory_bytes - 1);
  const PlanReport tight = ClosedFormEvaluator(c.problem).evaluate(plan);
  EXPECT_FALSE(tight.feasible);
  EXPECT_NE(tight.why_not.find("stage 0"), std::string::npos) << tight.why_not;
  EXPECT_NE(tight.why_not.find(fmt::format("({} bytes)", free.peak_memory_bytes)), std::string::npos);
}

}  // namespace
}  // namespace millrace::plan
