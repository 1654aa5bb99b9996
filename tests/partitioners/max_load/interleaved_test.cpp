// interleaved for max_load against trying every assignment, and what its plans look like.
#include <gmock/gmock.h>

#include "config/option.h"
#include "partitioners/common/max_load/exact.h"
#include "partitioners/common/max_load/interleaved.h"
#include "partitioners/interleaved.h"
#include "plan/published.h"
#include "plan/validate.h"
#include "tests/partitioners/max_load/cases.h"
#include "tests/partitioners/no_deadline.h"

namespace millrace::partitioners {
namespace {

using testing_support::best_by_trying;
using testing_support::random_split;
using testing_support::Split;
using testing_support::SplitCase;

plan::PlanSet search(const SplitCase& c, std::int64_t rounds) {
  plan::ClosedFormEvaluator evaluate(c.problem);
  return max_load_interleaved(c.problem, rounds, kNoDeadline, evaluate);
}

TEST(MaxLoadInterleaved, ReachesTheBestAssignmentOfSmallModels) {
  int reached = 0, tried = 0, below_chains = 0, could_be_below = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Split split = random_split(2 + static_cast<int>(seed % 6), seed);
    if (seed % 2 == 0) split.edges = testing_support::chain_edges(split.model.ops.size());
    const double best = best_by_trying(split, false), best_chain = best_by_trying(split, true);
    const SplitCase c(split);
    const plan::PlanSet plans = search(c, 1);
    SCOPED_TRACE(seed);
    if (best == std::numeric_limits<double>::infinity()) {
      EXPECT_FALSE(plans.feasible());
      continue;
    }
    ++tried;
    if (!plans.feasible()) continue;  // packing is no proof
    const plan::Candidate& answer = plans.best(c.problem.objective);
    const double value = *answer.report.objective_value;
    EXPECT_EQ(plan::judge(answer.plan, c.problem).value, value);
    for (const auto& violation : plan::validate(answer.plan, c.graph, {.judged_only = true})) {
      ADD_FAILURE() << violation.text;
    }
    EXPECT_GE(value, best * (1 - 1e-12));
    EXPECT_LE(value, best_chain * (1 + 1e-12));
    EXPECT_LE(*answer.report.bound, best * (1 + 1e-9));
    EXPECT_EQ(answer.report.partitioner, "interleaved");
    reached += value <= best * (1 + 1e-9) ? 1 : 0;
    could_be_below += best < best_chain * (1 - 1e-9) ? 1 : 0;
    below_chains += value < best_chain * (1 - 1e-9) ? 1 : 0;
  }
  EXPECT_GE(reached, tried - 2);
  EXPECT_GT(could_be_below, 0);
  EXPECT_GE(below_chains, could_be_below - 2);
}

TEST(MaxLoadInterleaved, ADeviceMayHoldSeveralStages) {
  // A chain of 4, 3, 1, 2 on two devices.
  Split split;
  split.model.ops = {{4, 9, 0, true, 1}, {3, 9, 0, true, 1}, {1, 9, 0, true, 1}, {2, 9, 0, true, 1}};
  split.edges = {{0, 1}, {1, 2}, {2, 3}};
  split.model.accelerators = 2;
  const SplitCase c(split);
  const plan::PlanSet plans = search(c, 1);
  const plan::Candidate& answer = plans.best(c.problem.objective);
  EXPECT_EQ(*answer.report.objective_value, 5);  // 4 + 1 and 3 + 2; convex stages reach 6
  const auto& stages = answer.plan.pipelines[0].stages;
  ASSERT_EQ(stages.size(), 4U);
  EXPECT_EQ(stages[0].devices, stages[2].devices);
  EXPECT_EQ(stages[1].devices, stages[3].devices);
  EXPECT_EQ(plan::validate(answer.plan, c.graph, {}).at(0).fault, plan::Fault::device_repeated);
  EXPECT_TRUE(plan::validate(answer.plan, c.graph, {.judged_only = true}).empty());
}

TEST(MaxLoadInterleaved, PacksWhereNoChainFits) {
  // A chain of sizes 3, 3, 1, 1, 2, 2 on three accelerators of 4: only 3 + 1, 3 + 1 and 2 + 2.
  Split split;
  for (const double bytes : {3.0, 3.0, 1.0, 1.0, 2.0, 2.0}) split.model.ops.push_back({1, 9, bytes, true, 1});
  split.edges = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}};
  split.model.accelerators = 3;
  split.model.memory_bytes = 4;
  ASSERT_EQ(best_by_trying(split, true), std::numeric_limits<double>::infinity());
  const SplitCase c(split);
  const plan::PlanSet plans = search(c, 1);
  ASSERT_TRUE(plans.feasible());
  EXPECT_EQ(*plans.best(c.problem.objective).report.objective_value, 2);
}

TEST(MaxLoadInterleaved, TheSeedDecides) {
  SplitCase c(testing_support::wide_split(4, 5));
  const plan::PlanSet first = search(c, 2), again = search(c, 2);
  EXPECT_EQ(first.candidates().at(0).plan, again.candidates().at(0).plan);
  c.problem.seed = 2;
  EXPECT_NE(first.candidates().at(0).plan, search(c, 2).candidates().at(0).plan);
}

TEST(MaxLoadInterleaved, NoRoundsGiveTheBestChain) {
  const SplitCase c(random_split(6, 12));
  plan::ClosedFormEvaluator evaluate(c.problem);
  EXPECT_EQ(search(c, 0).best(c.problem.objective).report.objective_value,
            max_load_exact(c.problem, kNoDeadline, evaluate).best(c.problem.objective).report.objective_value);
}

TEST(Interleaved, OtherObjectivesAreRefusedWithTheReason) {
  SplitCase c(random_split(6, 12));
  c.problem.objective = plan::Objective::throughput;
  plan::ClosedFormEvaluator evaluate(c.problem);
  const plan::PlanSet plans = interleaved(c.problem, config::defaults(interleaved_options()), evaluate);
  EXPECT_TRUE(plans.candidates().empty());
  ASSERT_EQ(plans.refusals().size(), 1U);
  EXPECT_EQ(plans.refusals()[0].reason, plan::Refusal::not_offered);
  EXPECT_THAT(plans.refusals()[0].detail, testing::HasSubstr("schedules interleaved"));
}

}  // namespace
}  // namespace millrace::partitioners
