// PipeDream's formula against numbers by hand, and its search against every plan of small graphs.
#include <gmock/gmock.h>

#include "base/errors.h"
#include "partitioners/common/pipedream/search.h"
#include "plan/validate.h"
#include "tests/partitioners/no_deadline.h"
#include "tests/partitioners/published/cases.h"

namespace millrace::partitioners {
namespace {

using testing_support::each_composition;
using testing_support::each_division;
using testing_support::equal_nodes;
using testing_support::one_pipeline;
using testing_support::profile;
using testing_support::PublishedCase;
using testing_support::random_layers;

constexpr auto kPipedream = plan::Objective::pipedream;
Plan to_plan(const PipedreamPlan& found) {
  Plan plan;
  plan.pipelines.emplace_back();
  for (std::size_t s = 0; s < found.stages.size(); ++s) {
    Stage& stage = plan.pipelines[0].stages.emplace_back();
    stage.ops = found.stages[s];
    stage.devices = found.devices[s];
    stage.shares.assign(stage.devices.size(), 1.0 / static_cast<double>(stage.devices.size()));
  }
  return plan;
}

// n0 (2 s, 8 B parameters, sends 6 B) → n1 (3 s, sends 4 B) → n2 (4 s, 16 B), and n0 → n2.
Graph three() { return profile({{2, 8, 6, {}}, {3, 0, 4, {0}}, {4, 16, 0, {0, 1}}}); }

TEST(PipedreamFormula, OneLevel) {
  const PublishedCase c(three(), equal_nodes(1, 3, 2), kPipedream);
  // n0 on 2 devices: (2 + 4·8/(2·2)) / 2 = 5 and no border; the rest on one: 7, border in 2·6/2 = 6.
  plan::Judgement judgement = plan::judge(one_pipeline({0, 1, 1}, {2, 1}), c.problem);
  EXPECT_EQ(judgement.value, 7);
  EXPECT_EQ(judgement.limiting_stage, 1);
  EXPECT_EQ(judgement.why_not, "");
  // n1 on its own: borders 2·6/2 = 6 in, 2·(6 + 4)/2 = 10 out, since n0's output is read behind it too.
  EXPECT_EQ(plan::judge(one_pipeline({0, 1, 2}, {1, 1, 1}), c.problem).value, 10);
  // All on all: (9 + 4·2·24/(2·3)) / 3.
  EXPECT_DOUBLE_EQ(plan::judge(one_pipeline({0, 0, 0}, {3}), c.problem).value, 41.0 / 3);
  EXPECT_EQ(plan::bound_pipedream(c.problem), 3);
}

TEST(PipedreamFormula, TwoLevels) {
  // Inside a node 4 B/s, between nodes 1 B/s. Node 0: n0 | n1: max(2, 3, 2·6/4, 2·10/4) = 5; node 1: n2 on 2 devices:
  // (4 + 4·16/(4·2)) / 2 = 6, but its border 2·10/1.
  const PublishedCase c(three(), equal_nodes(2, 2, 4, 1), kPipedream);
  EXPECT_EQ(plan::judge(one_pipeline({0, 1, 2}, {1, 1, 2}), c.problem).value, 20);
  // Two groupings: a node for each stage, (2 + 4·8/(4·2)) / 2 = 3 and (7 + 8) / 2 = 7.5 with the border 2·6/1; or both
  // stages in each node, (max(2, 7, 2·6/4) + 4·24/(1·2)/2) / 2 = 15.5.
  const plan::Judgement judgement = plan::judge(one_pipeline({0, 1, 1}, {2, 2}), c.problem);
  EXPECT_EQ(judgement.value, 12);
  EXPECT_EQ(judgement.limiting_stage, 1);
  // At 4 B/s between nodes the second one is better: (7 + 4·24/(4·2)/2) / 2.
  const PublishedCase fast(three(), equal_nodes(2, 2, 4, 4), kPipedream);
  EXPECT_EQ(plan::judge(one_pipeline({0, 1, 1}, {2, 2}), fast.problem).value, 6.5);
  const plan::Judgement none = plan::judge(one_pipeline({0, 0, 1}, {3, 1}), c.problem);
  EXPECT_THAT(none.why_not, testing::HasSubstr("nodes of 2 devices"));
}

TEST(PipedreamFormula, Memory) {
  // n0 keeps 8 + 6 B for each of ⌈1/2⌉ = 1 device behind it.
  const PublishedCase fits(three(), equal_nodes(1, 3, 2, 1, Bytes(14)), kPipedream);
  EXPECT_EQ(plan::judge(one_pipeline({0, 1, 1}, {2, 1}), fits.problem).why_not, "");
  const PublishedCase small(three(), equal_nodes(1, 3, 2, 1, Bytes(13)), kPipedream);
  EXPECT_THAT(plan::judge(one_pipeline({0, 1, 1}, {2, 1}), small.problem).why_not, testing::HasSubstr("14 bytes"));
}

TEST(PipedreamFormula, RefusesWhatItDoesNotKnow) {
  const PublishedCase c(three(), equal_nodes(1, 3, 2), kPipedream);
  Plan plan = one_pipeline({0, 1, 1}, {1, 1});
  EXPECT_THAT(plan::judge(plan, c.problem).why_not, testing::HasSubstr("2 of 3 devices"));
  plan.pipelines.push_back(plan.pipelines[0]);
  EXPECT_THAT(plan::judge(plan, c.problem).why_not, testing::HasSubstr("2 pipelines"));
  GraphBuilder builder("relu");
  builder.add({.name = "r", .kind = "relu", .inputs = {builder.input("x", {Dims{1}})}});
  const Graph plain = builder.build();
  plan::Problem problem = c.problem;
  problem.graph = &plain;
  EXPECT_THROW(plan::judge(one_pipeline({0}, {3}), problem), InvalidInput);
}

// The best value over every division into stages and every number of replicas.
double best_of_all(const PublishedCase& c) {
  double best = INFINITY;
  each_division(c.graph, c.cluster.size(), [&](const std::vector<int>& stage_of, int stages) {
    each_composition(c.cluster.size(), stages, [&](const std::vector<int>& replicas) {
      const plan::Judgement judgement = plan::judge(one_pipeline(stage_of, replicas), c.problem);
      if (judgement.why_not.empty()) best = std::min(best, judgement.value);
    });
  });
  return best;
}

void expect_best(const PublishedCase& c, std::uint64_t seed) {
  const PipedreamPlan found = pipedream_search(c.problem, kNoDeadline);
  const double best = best_of_all(c);
  ASSERT_EQ(found.stages.empty(), best == INFINITY) << seed;
  if (found.stages.empty()) return;
  EXPECT_NEAR(found.value, best, 1e-12 * best) << seed;
  EXPECT_NEAR(found.bound, best, 1e-12 * best) << seed;
  EXPECT_LE(plan::bound_pipedream(c.problem), best * (1 + 1e-12));
  const Plan plan = to_plan(found);
  EXPECT_TRUE(plan::validate(plan, c.graph, {c.cluster.size(), {}}).empty()) << seed;
  const plan::Judgement judgement = plan::judge(plan, c.problem);
  EXPECT_NEAR(judgement.value, found.value, 1e-12 * best) << seed;
  EXPECT_EQ(judgement.why_not, "");
}

TEST(PipedreamSearch, IsAsGoodAsTheBestOfAllPlansOnOneLevel) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const int size = 2 + static_cast<int>(seed % 5), devices = 1 + static_cast<int>(seed % 4);
    const double bandwidth = seed % 3 == 0 ? 1 : 8;
    const std::optional<Bytes> memory = seed % 7 == 3 ? std::optional(Bytes(40)) : std::nullopt;
    expect_best({profile(random_layers(size, seed)), equal_nodes(1, devices, bandwidth, 1, memory), kPipedream}, seed);
  }
}

TEST(PipedreamSearch, IsAsGoodAsTheBestOfAllPlansOnTwoLevels) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const int size = 2 + static_cast<int>(seed % 4);
    const std::optional<Bytes> memory = seed % 7 == 3 ? std::optional(Bytes(60)) : std::nullopt;
    expect_best(
        {profile(random_layers(size, seed)), equal_nodes(2, 2 + static_cast<int>(seed % 2), 8, 2, memory), kPipedream},
        seed);
  }
}

TEST(PipedreamSearch, FreeLayersMayHoldDevices) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    expect_best({profile(random_layers(5, seed, true)), equal_nodes(1, 4, 1), kPipedream}, seed);
  }
}

// Wide and long enough that free layers are merged: as good as without, and the bound holds.
TEST(PipedreamSearch, MergingLosesNothingThatItsBoundDoesNotTell) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    std::vector<testing_support::Layer> layers = random_layers(8, seed);
    const int last = static_cast<int>(layers.size()) - 1;
    for (int i = 0; i < 12; ++i) layers.push_back({0, 0, 4, {last}});  // free readers of the last: 2^12 more prefixes
    const PublishedCase many(profile(layers), equal_nodes(1, 3, 4), kPipedream);
    layers.resize(10);  // two are enough to hold devices
    const PublishedCase few(profile(layers), equal_nodes(1, 3, 4), kPipedream);
    const PipedreamPlan found = pipedream_search(many.problem, kNoDeadline);
    const double best = pipedream_search(few.problem, kNoDeadline).value;
    EXPECT_LE(found.bound, best * (1 + 1e-12)) << seed;
    EXPECT_GE(found.value, best * (1 - 1e-12)) << seed;
    EXPECT_TRUE(plan::validate(to_plan(found), many.graph, {3, {}}).empty());
    EXPECT_NEAR(plan::judge(to_plan(found), many.problem).value, found.value, 1e-12 * found.value);
  }
}

TEST(PipedreamSearch, AnswersAfterItsDeadline) {
  const PublishedCase c(profile(random_layers(200, 7)), equal_nodes(4, 4, 8, 2), kPipedream);
  const PipedreamPlan found = pipedream_search(c.problem, std::chrono::steady_clock::time_point::min());
  EXPECT_TRUE(found.late);
  EXPECT_FALSE(found.stages.empty());
  EXPECT_NEAR(plan::judge(to_plan(found), c.problem).value, found.value, 1e-12 * found.value);
}

TEST(PipedreamSearch, WideGraphsAreSearchedNearTheBestCuts) {
  // 12 branches of 6: 7^12 prefixes.
  std::vector<testing_support::Layer> layers{{1, 4, 8, {}}};
  for (int i = 0; i < 72; ++i) {
    layers.push_back({1.0 + i % 5, 4 * (i % 3), 4, {i < 12 ? 0 : i - 11}});
  }
  const PublishedCase c(profile(layers), equal_nodes(1, 4, 100), kPipedream);
  const PipedreamPlan found = pipedream_search(c.problem, kNoDeadline);
  EXPECT_FALSE(found.late);
  EXPECT_LE(found.bound, found.value);
  EXPECT_LE(found.value, found.bound * 1.1);
  EXPECT_TRUE(plan::validate(to_plan(found), c.graph, {4, {}}).empty());
}

}  // namespace
}  // namespace millrace::partitioners
