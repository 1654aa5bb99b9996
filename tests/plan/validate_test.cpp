// Each rule of a plan, broken once; REPORTS P03, P15.
#include "plan/validate.h"

#include <functional>

#include <gmock/gmock.h>

#include "base/errors.h"
#include "tests/plan/table_cost.h"

namespace millrace::plan {
namespace {

using testing::HasSubstr;
using testing_support::branches;
using testing_support::chain;

Stage stage(std::vector<OpId> ops, std::vector<int> devices) {
  const double share = 1.0 / static_cast<double>(devices.size());
  Stage made;
  made.ops = std::move(ops);
  made.shares.assign(devices.size(), share);
  made.devices = std::move(devices);
  return made;
}

Plan plan_of(std::vector<Stage> stages, std::int64_t micro_batches = 2) {
  Plan plan;
  plan.pipelines.push_back({1.0, micro_batches, {}, std::move(stages)});
  return plan;
}

// Three stages of a chain of six; stage 1 has two replicas.
Plan good() { return plan_of({stage({0, 1}, {0}), stage({2, 3}, {1, 2}), stage({4, 5}, {3})}); }

struct Broken {
  const char* what;
  std::function<void(Plan&)> breaks;
  Fault fault;
  const char* names;
};

class BrokenPlan : public testing::TestWithParam<Broken> {};

TEST_P(BrokenPlan, IsRefusedByItsReason) {
  const Graph graph = chain(6);
  Plan plan = good();
  ASSERT_TRUE(validate(plan, graph, {4, 8}).empty());
  GetParam().breaks(plan);
  const std::vector<Violation> violations = validate(plan, graph, {4, 8});
  ASSERT_EQ(violations.size(), 1U);
  EXPECT_EQ(violations[0].fault, GetParam().fault) << name(violations[0].fault);
  EXPECT_THAT(violations[0].text, HasSubstr(GetParam().names));
}

Stage& at(Plan& plan, std::size_t s) { return plan.pipelines[0].stages[s]; }

INSTANTIATE_TEST_SUITE_P(
    Rules, BrokenPlan,
    testing::Values(
        Broken{"digest", [](Plan& p) { p.graph_digest = "00"; }, Fault::other_graph, "00"},
        Broken{"none", [](Plan& p) { p.pipelines.clear(); }, Fault::no_stages, "no pipelines"},
        Broken{"missing", [](Plan& p) { at(p, 1).ops = {2}; }, Fault::missing_operator, "n3"},
        Broken{"twice", [](Plan& p) { at(p, 1).ops = {2, 3, 4}; }, Fault::repeated_operator, "n4"},
        Broken{"unknown", [](Plan& p) { at(p, 2).ops = {4, 5, 6}; }, Fault::unknown_operator, "6"},
        Broken{"convex", [](Plan& p) { at(p, 0).ops = {0, 2}; at(p, 1).ops = {1, 3}; }, Fault::not_convex, "n1 → n2"},
        Broken{"order", [](Plan& p) { std::swap(at(p, 0).ops, at(p, 1).ops); }, Fault::stage_order, "n1 → n2"},
        Broken{"devices", [](Plan& p) { at(p, 2).devices = {5}; }, Fault::device_count, "devices 0 to 3"},
        Broken{"reused", [](Plan& p) { at(p, 2).devices = {3, 3}; at(p, 2).shares = {0.5, 0.5}; },
               Fault::device_repeated, "device 3"},
        Broken{"sum", [](Plan& p) { at(p, 1).shares = {0.5, 0.4}; }, Fault::shares, "stage 1"},
        Broken{"negative", [](Plan& p) { at(p, 1).shares = {1.5, -0.5}; }, Fault::shares, "-0.5"},
        Broken{"count", [](Plan& p) { at(p, 1).shares = {1.0}; }, Fault::shares, "1 shares for 2 replicas"},
        Broken{"share", [](Plan& p) { p.pipelines[0].share = 0.5; }, Fault::shares, "pipelines"},
        Broken{"rows", [](Plan& p) { p.pipelines[0].micro_batches = 9; }, Fault::batch_too_small, "batch of 8"},
        Broken{"micro", [](Plan& p) { p.pipelines[0].micro_batches = 0; }, Fault::micro_batches, "at least 1"},
        Broken{"warmup", [](Plan& p) { p.pipelines[0].warmup = {1, 0}; }, Fault::warmup, "3 stages"},
        Broken{"tensor", [](Plan& p) { at(p, 0).tensor_parallel = 2; }, Fault::device_count, "replicas of 2"}),
    [](const auto& info) { return std::string(info.param.what); });

TEST(Validate, EmptyStageIsNamed) {
  const Graph graph = chain(2);
  const auto violations = validate(plan_of({stage({0, 1}, {0}), stage({}, {1})}), graph, {2, 8});
  ASSERT_EQ(violations.size(), 1U);
  EXPECT_EQ(violations[0].fault, Fault::empty_stage);
}

TEST(Validate, CycleOfConvexStagesIsToldFromAWrongOrder) {
  const Graph graph = branches();  // n0 a0 a1 b0 b1 join
  // a0 with b1, b0 with a1: each stage is convex, but each needs the other.
  const auto cycle =
      validate(plan_of({stage({0}, {0}), stage({1, 4}, {1}), stage({2, 3}, {2}), stage({5}, {3})}), graph);
  ASSERT_EQ(cycle.size(), 1U);
  EXPECT_EQ(cycle[0].fault, Fault::cyclic) << cycle[0].text;
  EXPECT_THAT(cycle[0].text, HasSubstr("stage 1 → 2 (a0 → a1), stage 2 → 1 (b0 → b1)"));
  // Branches as stages of their own are fine.
  EXPECT_TRUE(validate(plan_of({stage({0}, {0}), stage({3, 4}, {1}), stage({1, 2}, {2}), stage({5}, {3})}), graph)
                  .empty());
}

TEST(Validate, RanksThatThePlanDoesNotUse) {
  const Graph graph = chain(6);
  for (const int ranks : {3, 6}) {
    const auto violations = validate(good(), graph, {ranks, 8});
    ASSERT_EQ(violations.size(), 1U);
    EXPECT_THAT(violations[0].text, HasSubstr("uses 4 devices"));
    EXPECT_THAT(violations[0].text, HasSubstr(fmt::format("{} ranks", ranks)));
  }
}

TEST(Validate, PipelinesShareTheBatchByTheirShares) {
  const Graph graph = chain(2);
  Plan plan = plan_of({stage({0, 1}, {0})}, 4);
  plan.pipelines.push_back(plan.pipelines[0]);
  plan.pipelines[0].share = 0.8;
  plan.pipelines[1].share = 0.2;
  plan.pipelines[1].stages[0].devices = {1};
  EXPECT_TRUE(validate(plan, graph, {2, 20}).empty());
  const auto violations = validate(plan, graph, {2, 16});  // 3 rows for 4 micro-batches
  ASSERT_EQ(violations.size(), 1U);
  EXPECT_THAT(violations[0].text, HasSubstr("pipeline 1 (of 2) 3 rows, fewer than its 4 micro-batches"));
}

TEST(RequireValid, ListsAllViolations) {
  const Graph graph = chain(6);
  Plan plan = good();
  plan.pipelines[0].stages[1].ops = {2};
  plan.pipelines[0].stages[1].shares = {0.5, 0.6};
  try {
    require_valid(plan, graph, {}, "plan.yaml");
    FAIL() << "not refused";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("plan.yaml"));
    EXPECT_THAT(error.what(), HasSubstr("n3"));
    EXPECT_THAT(error.what(), HasSubstr("shares"));
  }
}

TEST(Validate, StagesMayShareAllOfTheirDevicesWhereTheScheduleSaysSo) {
  const Graph graph = chain(4);
  Plan plan;
  plan.graph_digest = graph.digest();
  Pipeline& pipeline = plan.pipelines.emplace_back();
  for (int s = 0; s < 4; ++s) {
    Stage& stage = pipeline.stages.emplace_back();
    stage.ops = {s};
    stage.devices = {s % 2};
    stage.shares = {1.0};
  }
  EXPECT_EQ(validate(plan, graph).front().fault, Fault::device_repeated);
  EXPECT_THAT(validate(plan, graph, {.devices = 2, .several_stages = true}), testing::IsEmpty());
  pipeline.stages[2].devices = {0, 2};
  pipeline.stages[2].shares = {0.5, 0.5};
  EXPECT_EQ(validate(plan, graph, {.several_stages = true}).front().fault, Fault::device_repeated);
}

}  // namespace
}  // namespace millrace::plan
