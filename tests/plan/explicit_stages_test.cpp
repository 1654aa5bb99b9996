// A user's own stages become plans; what does not cover the graph is refused by name.
#include "plan/explicit_stages.h"

#include <gmock/gmock.h>

#include "base/errors.h"
#include "tests/plan/table_cost.h"

namespace millrace::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::Case;
using testing_support::chain;

std::string refusal(const std::vector<std::vector<std::string>>& stages) {
  Case c(chain(4), {1, 1}, {1, 1, 1, 1}, 2);
  ClosedFormEvaluator evaluate(c.problem);
  try {
    explicit_stages(c.problem, stages, evaluate);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "not refused";
}

TEST(ExplicitStages, AreTakenAsTheyAreInEveryNumberOfPipelines) {  // REPORTS P06
  Case c(chain(4), {1, 1, 1, 1, 1, 1}, {1, 1, 1, 1}, 12);
  ClosedFormEvaluator evaluate(c.problem);
  const PlanSet plans = explicit_stages(c.problem, {{"n0"}, {"n1 .. n3"}}, evaluate);
  ASSERT_EQ(plans.candidates().size(), 3U);  // 1, 2, 3 pipelines; 6 leave one device for two stages
  ASSERT_EQ(plans.refusals().size(), 1U);
  EXPECT_EQ(plans.refusals()[0].reason, Refusal::more_stages_than_devices);
  const Plan& two = plans.candidates()[1].plan;
  ASSERT_EQ(two.pipelines.size(), 2U);
  EXPECT_THAT(two.pipelines[1].stages[0].devices, ElementsAre(3, 4));  // 3 devices: 2, then 1
  EXPECT_THAT(two.pipelines[1].stages[1].devices, ElementsAre(5));
  EXPECT_THAT(two.pipelines[0].stages[1].ops, ElementsAre(1, 2, 3));
  EXPECT_EQ(plans.candidates()[1].report.partitioner, "explicit");
}

TEST(ExplicitStages, RefusalsNameOperators) {
  EXPECT_THAT(refusal({{"n0"}, {"n1", "n3"}}), HasSubstr("in no stage: n2"));
  EXPECT_THAT(refusal({{"n0", "n1"}, {"n1 .. n3"}}), HasSubstr("stages[1][0]: operator 'n1' is in stage 0 already"));
  EXPECT_THAT(refusal({{"n0", "m1"}, {"n2", "n3"}}), HasSubstr("stages[0][1]: 'm1' matches no operator"));
  EXPECT_THAT(refusal({{"n0", "n2"}, {"n1", "n3"}}), HasSubstr("not convex"));
  EXPECT_THAT(refusal({{"n2", "n3"}, {"n0", "n1"}}), HasSubstr("must be listed after"));
  EXPECT_THAT(refusal({{"*"}, {}}), HasSubstr("stage 1 has no operators"));
}

}  // namespace
}  // namespace millrace::plan
