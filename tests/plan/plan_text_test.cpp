// The plan file: exact round trip, strict reading, REPORTS P03.
#include "plan/plan_text.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "base/errors.h"
#include "config/document.h"
#include "tests/plan/table_cost.h"

namespace millrace::plan {
namespace {

using testing::HasSubstr;
using testing_support::chain;

Plan example(const Graph& graph) {
  Plan plan;
  plan.model = graph.name();
  plan.graph_digest = graph.digest();
  plan.schedule = "gpipe";
  plan.bucket_size = Bytes(12345678);
  Stage first, second;
  first.ops = {0, 1, 2, 3, 4, 5};
  first.devices = {0, 1, 2};
  first.shares = {1.0 / 3, 1.0 / 3, 1.0 / 3};
  first.recompute = {1, 2};
  second.ops = {6, 7, 8, 9};
  second.devices = {3};
  second.shares = {1.0};
  plan.pipelines.push_back({0.7, 4, {1, 0}, {first, second}});
  first.devices = {4, 5, 6};
  second.devices = {7};
  plan.pipelines.push_back({0.3, 4, {}, {first, second}});
  return plan;
}

Plan read(const std::string& text, const Graph& graph) {
  config::Problems problems;
  const auto source = std::make_shared<config::Source>(config::Source{"plan.yaml", {}, true});
  const config::Node document = config::load_text(text, source, problems);
  Plan plan = read_plan(document, graph, problems);
  problems.throw_if_any();
  return plan;
}

std::string refusal(const std::string& text, const Graph& graph) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "millrace_plan_text_test.yaml";
  std::ofstream(file) << text;
  std::string message = "not refused";
  try {
    load_plan(file, graph);
  } catch (const InvalidInput& error) {
    message = error.what();
  }
  std::filesystem::remove(file);
  return message;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " in\n" << text;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(PlanText, RoundTripIsExact) {
  const Graph graph = chain(10);
  const Plan plan = example(graph);
  const std::string text = to_yaml(plan, graph);
  EXPECT_THAT(text, HasSubstr("n0 .. n5"));
  EXPECT_EQ(read(text, graph), plan) << text;
  EXPECT_EQ(to_yaml(read(text, graph), graph), text);
}

TEST(PlanText, RecomputationSelectsWithinItsStage) {
  const Graph graph = chain(10);
  const std::string text = to_yaml(example(graph), graph);
  const std::string own = "recompute: [n1 .. n2]";
  const Plan all = read(replaced(text, own, "recompute: ['*']"), graph);
  EXPECT_EQ(all.pipelines[0].stages[0].recompute, (std::vector<OpId>{0, 1, 2, 3, 4, 5}));
  EXPECT_THAT(refusal(replaced(text, own, "recompute: [n1, n8]"), graph),
              testing::AllOf(HasSubstr("'n8' matches no operator of this stage"), HasSubstr(".recompute[1]")));
}

TEST(PlanText, OptionsOfTheScheduleStandBesideItsName) {
  const Graph graph = chain(10);
  Plan plan = example(graph);
  plan.schedule = "hippie";
  plan.schedule_options = {{"base", "1f1b"}};
  EXPECT_EQ(read(to_yaml(plan, graph), graph), plan) << to_yaml(plan, graph);
}

TEST(PlanText, SharesAndRecomputeMayBeLeftOut) {
  const Graph graph = chain(4);
  const Plan plan = read("millrace_plan: 1\nmodel: chain\ngraph_digest: " + graph.digest() +
                             "\nschedule: 1f1b\npipelines:\n"
                             "  - micro_batches: 2\n    stages:\n      - {ops: ['n*'], devices: [0, 1]}\n",
                         graph);
  EXPECT_EQ(plan.pipelines[0].stages[0].shares, (std::vector{0.5, 0.5}));
  EXPECT_EQ(plan.pipelines[0].stages[0].ops.size(), 4U);
}

TEST(PlanText, AnotherGraphIsRefused) {
  const Graph graph = chain(10), other = chain(11);
  const std::string text = to_yaml(example(graph), graph);
  EXPECT_THAT(refusal(text, other), HasSubstr("graph_digest"));
  EXPECT_THAT(refusal(text, other), HasSubstr(graph.digest()));
}

TEST(PlanText, HandEditsThatBreakTheCoverNameTheOperator) {
  const Graph graph = chain(10);
  const std::string text = to_yaml(example(graph), graph);
  EXPECT_THAT(refusal(replaced(text, "n6 .. n9", "n7 .. n9"), graph), HasSubstr("in no stage: n6"));
  EXPECT_THAT(refusal(replaced(text, "n0 .. n5", "n0 .. n6"), graph), HasSubstr("'n6' is in stage 0 already"));
  EXPECT_THAT(refusal(replaced(text, "n6 .. n9", "m6 .. n9"), graph), HasSubstr("did you mean 'n6'"));
  EXPECT_THAT(refusal(replaced(text, "share: 0.7", "share: 0.5"), graph), HasSubstr("sum to 1"));
}

TEST(PlanText, UnknownKeysAndTypesHaveAPlace) {
  const Graph graph = chain(10);
  const std::string text = to_yaml(example(graph), graph);
  EXPECT_THAT(refusal(replaced(text, "schedule:", "scedule:"), graph), HasSubstr("scedule"));
  EXPECT_THAT(refusal(replaced(text, "gpipe", "gpip"), graph),
              testing::ContainsRegex("millrace_plan_text_test.yaml:[0-9]+:.*schedule.*'gpip'.*did you mean 'gpipe'"));
  EXPECT_THAT(refusal(replaced(text, "micro_batches: 4", "micro_batches: 0"), graph), HasSubstr("micro_batches"));
  EXPECT_THAT(refusal(replaced(text, "millrace_plan: 1", "millrace_plan: 2"), graph), HasSubstr("millrace_plan"));
}

}  // namespace
}  // namespace millrace::plan
