// What each baseline cuts; REPORTS P02.
#include <gmock/gmock.h>

#include "base/errors.h"
#include "partitioners/common/equal_cuts.h"
#include "partitioners/registry.h"
#include "tests/plan/table_cost.h"

namespace millrace::partitioners {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing_support::Case;
using testing_support::chain;

plan::PlanSet plans(const Case& c, const std::string& name) {
  const Entry& entry = by_name(name);
  plan::ClosedFormEvaluator evaluate(c.problem);
  return entry.partition(c.problem, config::defaults(entry.options), evaluate);
}

std::vector<std::size_t> sizes(const Plan& plan) {
  std::vector<std::size_t> result;
  for (const Stage& stage : plan.pipelines[0].stages) result.push_back(stage.ops.size());
  return result;
}

TEST(LayerEqual, TheRemainderIsSpread) {
  Case c(chain(38), std::vector<double>(8, 1.0), std::vector<double>(38, 1.0), 8);
  c.problem.pipelines = 1;
  c.problem.stages = 8;
  EXPECT_THAT(sizes(plans(c, "layer_equal").candidates().at(0).plan), ElementsAre(5, 5, 5, 5, 5, 5, 4, 4));
}

TEST(EvenCuts, SizesDifferByAtMostOne) {
  for (std::size_t items = 1; items <= 64; ++items) {
    for (int parts = 1; static_cast<std::size_t>(parts) <= items; ++parts) {
      const Cuts cuts = even_cuts(items, parts);
      std::size_t begin = 0, least = items, most = 0;
      for (const std::size_t end : cuts) {
        least = std::min(least, end - begin);
        most = std::max(most, end - begin);
        begin = end;
      }
      ASSERT_EQ(begin, items);
      ASSERT_LE(most - least, 1U);
    }
  }
}

TEST(LayerEqual, CountsTaggedLayers) {
  GraphBuilder builder("layers");
  TensorId x = builder.input("x", {Dims{1}});
  int i = 0;
  for (const char* layer : {"stem", "block", "block", "block", "head"}) {
    x = builder.add({.name = fmt::format("n{}", i++), .kind = "relu", .inputs = {x}, .layer = layer});
  }
  Case c(builder.build(), {1, 1}, {1, 1, 1, 1, 1}, 2);
  c.problem.pipelines = 1;
  c.problem.stages = 2;
  EXPECT_THAT(sizes(plans(c, "layer_equal").candidates().at(0).plan), ElementsAre(4, 1));
}

TEST(LayerEqual, MoreStagesThanLayersAreRefused) {
  GraphBuilder builder("one");
  TensorId x = builder.input("x", {Dims{1}});
  for (const char* name : {"a", "b"}) x = builder.add({.name = name, .kind = "relu", .inputs = {x}, .layer = "l"});
  Case c(builder.build(), {1, 1}, {1, 1}, 2);
  c.problem.pipelines = 1;
  c.problem.stages = 2;
  const plan::PlanSet set = plans(c, "layer_equal");
  EXPECT_TRUE(set.candidates().empty());
  ASSERT_EQ(set.refusals().size(), 1U);
  EXPECT_THAT(set.refusals()[0].detail, testing::HasSubstr("2 stages of 1 layers"));
}

TEST(EqualCuts, EveryStageKeepsAnItemWhateverTheWeights) {
  EXPECT_THAT(equal_cuts(std::vector<double>{5, 0, 0, 0}, 4), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(equal_cuts(std::vector<double>{0, 0, 0, 5}, 3), ElementsAre(2, 3, 4));
  EXPECT_THAT(equal_cuts(std::vector<double>{0, 0, 0}, 2), ElementsAre(2, 3));
  EXPECT_THAT(equal_cuts(std::vector<double>{1, 1, 1, 1, 1, 1}, 3), ElementsAre(2, 4, 6));
  EXPECT_THAT(equal_cuts(std::vector<double>{4, 1, 1, 1, 1}, 2), ElementsAre(1, 5));
}

TEST(TimeEqual, CutsByTime) {
  Case c(chain(5), {1, 1}, {4, 1, 1, 1, 1}, 2);
  c.problem.pipelines = 1;
  c.problem.stages = 2;
  EXPECT_THAT(sizes(plans(c, "time_equal").candidates().at(0).plan), ElementsAre(1, 4));
}

TEST(ParameterEqual, TrailingOperatorsWithoutParametersStillFillStages) {
  GraphBuilder builder("front");
  TensorId x = builder.input("x", {Dims{2}});
  for (int i = 0; i < 2; ++i) {
    x = builder.add({.name = fmt::format("fc{}", i),
                     .kind = "linear",
                     .inputs = {x},
                     .attributes = {{"out_features", std::int64_t{2}}}});
  }
  for (int i = 0; i < 3; ++i) x = builder.add({.name = fmt::format("r{}", i), .kind = "relu", .inputs = {x}});
  Case c(builder.build(), {1, 1, 1, 1}, {1, 1, 1, 1, 1}, 4);
  c.problem.pipelines = 1;
  c.problem.stages = 4;
  const auto stage_sizes = sizes(plans(c, "parameter_equal").candidates().at(0).plan);
  EXPECT_EQ(stage_sizes.size(), 4U);
  EXPECT_THAT(stage_sizes, Each(Ge(1U)));
  c.problem.stages = 2;
  EXPECT_THAT(sizes(plans(c, "parameter_equal").candidates().at(0).plan), ElementsAre(1, 4));
}

TEST(DataParallel, OneStageOnAllDevices) {
  Case c(chain(3), {1, 1, 1, 1}, {1, 1, 1}, 8);
  const plan::PlanSet set = plans(c, "data_parallel");
  ASSERT_EQ(set.candidates().size(), 1U);
  ASSERT_EQ(set.candidates()[0].plan.pipelines.size(), 1U);
  EXPECT_THAT(set.candidates()[0].plan.pipelines[0].stages[0].devices, ElementsAre(0, 1, 2, 3));
  c.problem.pipelines = 2;
  EXPECT_EQ(plans(c, "data_parallel").candidates().at(0).plan.pipelines.size(), 2U);
  c.problem.stages = 2;
  EXPECT_EQ(plans(c, "data_parallel").refusals().at(0).reason, plan::Refusal::not_offered);
}

TEST(Registry, NearestName) {
  EXPECT_EQ(by_name("dp").name, "dp");
  try {
    by_name("time_equl");
    FAIL() << "not refused";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean 'time_equal'?"));
  }
}

}  // namespace
}  // namespace millrace::partitioners
