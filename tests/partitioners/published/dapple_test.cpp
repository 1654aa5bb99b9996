// DAPPLE's formula against numbers by hand, and its search against every plan and placement of small graphs.
#include <numeric>

#include <gmock/gmock.h>

#include "partitioners/common/dapple/search.h"
#include "plan/validate.h"
#include "tests/partitioners/no_deadline.h"
#include "tests/partitioners/published/cases.h"

namespace millrace::partitioners {
namespace {

using testing_support::each_composition;
using testing_support::each_division;
using testing_support::equal_nodes;
using testing_support::Layer;
using testing_support::profile;
using testing_support::PublishedCase;
using testing_support::random_layers;

constexpr auto kDapple = plan::Objective::dapple;
constexpr std::int64_t kGB = 1'000'000'000;

Plan make(const std::vector<std::vector<OpId>>& ops, const std::vector<std::vector<std::vector<int>>>& devices,
          std::int64_t micro_batches) {
  Plan plan;
  for (const auto& own : devices) {
    Pipeline& pipeline = plan.pipelines.emplace_back();
    pipeline.share = 1.0 / static_cast<double>(devices.size());
    pipeline.micro_batches = micro_batches;
    for (std::size_t s = 0; s < ops.size(); ++s) {
      Stage& stage = pipeline.stages.emplace_back();
      stage.ops = ops[s];
      stage.devices = own[s];
      stage.shares.assign(own[s].size(), 1.0 / static_cast<double>(own[s].size()));
    }
  }
  return plan;
}

// 1 s and 3 GB of parameters, sends 5 GB; 2 s and 6 GB. A profile of 2 samples, batches of 8 in micro-batches of 1.
struct Two : PublishedCase {
  Two()
      : PublishedCase(profile({{1, 3 * kGB, 5 * kGB, {}}, {2, 6 * kGB, 0, {0}}}, 2), equal_nodes(2, 4, 1), kDapple, 8) {
    problem.micro_batch_size = 1;
  }
};

TEST(DappleFormula, PlacementOfStages) {
  const Two c;
  // Times and activations ×4; 8 micro-batches; fill (4 + 8)/8. One server: block max(4/2, 8/2)/8 = 0.5, X = 2.5/25,
  // reductions 2·(1/2)·3/25 and 2·(1/2)·6/25 − block.
  EXPECT_DOUBLE_EQ(plan::judge(make({{0}, {1}}, {{{0, 1}, {2, 3}}}, 8), c.problem).value, 3.5 + 1.5 + 0.1 + 0.12);
  // On two servers: X = 2.5/1.
  EXPECT_DOUBLE_EQ(plan::judge(make({{0}, {1}}, {{{0, 1}, {4, 5}}}, 8), c.problem).value, 3.5 + 1.5 + 2.5 + 0.12);
  // The sender spans servers: X = 2.5/1, reduction 2·(1/2)·3/3.
  EXPECT_DOUBLE_EQ(plan::judge(make({{0}, {1}}, {{{0, 4}, {2, 3}}}, 8), c.problem).value, 3.5 + 1.5 + 2.5 + 1);
  // The receiver does: X = 2.5/3; its reduction 2 s − block is longer than the first's 0.12.
  EXPECT_DOUBLE_EQ(plan::judge(make({{0}, {1}}, {{{0, 1}, {2, 4}}}, 8), c.problem).value, 3.5 + 1.5 + 2.5 / 3 + 1.5);
  // One device each: nothing to reduce; block 8/8.
  EXPECT_DOUBLE_EQ(plan::judge(make({{0}, {1}}, {{{0}, {1}}}, 8), c.problem).value, 7 + 1.5 + 0.1);
}

TEST(DappleFormula, PipelinesAreReplicas) {
  const Two c;
  // Two pipelines of 4 micro-batches: block max(4, 8)/2/4 = 1, fill 12/8; the first stages are all on server 0, the
  // second on server 1: X = 2.5/1; reductions over 2 devices.
  EXPECT_DOUBLE_EQ(plan::judge(make({{0}, {1}}, {{{0}, {4}}, {{1}, {5}}}, 4), c.problem).value, 3 + 1.5 + 2.5 + 0.12);
  // A pipeline in each server: X = 2.5/25, reductions 2·(1/2)·3/3 and 2·(1/2)·6/3 − 1.
  EXPECT_DOUBLE_EQ(plan::judge(make({{0}, {1}}, {{{0}, {1}}, {{4}, {5}}}, 4), c.problem).value, 3 + 1.5 + 0.1 + 1);
}

TEST(DappleFormula, RefusesWhatItDoesNotKnow) {
  const Two c;
  EXPECT_THAT(plan::judge(make({{0}, {1}}, {{{0}, {1}}}, 4), c.problem).why_not, testing::HasSubstr("batch of 8"));
  EXPECT_THAT(plan::judge(make({{0}, {1}}, {{{0}, {1}}, {{2}, {3, 4}}}, 4), c.problem).why_not,
              testing::HasSubstr("differ"));
}

Plan to_plan(const DapplePlan& found) { return make(found.stages, found.devices, found.micro_batches); }

// Tries every division, every number of pipelines, every way to deal the devices.
class EveryPlan {
 public:
  explicit EveryPlan(const PublishedCase& c) : case_(c), devices_(c.cluster.size()) {}

  double best() {
    each_division(case_.graph, devices_, [&](const std::vector<int>& stage_of, int stages) {
      ops_.assign(static_cast<std::size_t>(stages), {});
      for (std::size_t op = 0; op < stage_of.size(); ++op) {
        ops_[static_cast<std::size_t>(stage_of[op])].push_back(static_cast<OpId>(op));
      }
      for (int pipelines = 1; pipelines <= devices_; ++pipelines) {
        const std::int64_t rows = *case_.problem.micro_batch_size * pipelines;
        if (devices_ % pipelines != 0 || case_.problem.batch % rows != 0) continue;
        each_composition(devices_ / pipelines, stages, [&](const std::vector<int>& replicas) {
          dealt_.assign(static_cast<std::size_t>(pipelines), std::vector<std::vector<int>>(ops_.size()));
          deal(0, replicas, case_.problem.batch / rows);
        });
      }
    });
    return best_;
  }

 private:
  void deal(int device, const std::vector<int>& replicas, std::int64_t micro_batches) {
    if (device == devices_) {
      const plan::Judgement judgement = plan::judge(make(ops_, dealt_, micro_batches), case_.problem);
      EXPECT_EQ(judgement.why_not, "");
      best_ = std::min(best_, judgement.value);
      return;
    }
    for (auto& pipeline : dealt_) {
      for (std::size_t s = 0; s < pipeline.size(); ++s) {
        if (static_cast<int>(pipeline[s].size()) == replicas[s]) continue;
        pipeline[s].push_back(device);
        deal(device + 1, replicas, micro_batches);
        pipeline[s].pop_back();
      }
    }
  }

  const PublishedCase& case_;
  int devices_;
  std::vector<std::vector<OpId>> ops_;
  std::vector<std::vector<std::vector<int>>> dealt_;
  double best_ = INFINITY;
};

std::vector<Layer> heavy_layers(int size, std::uint64_t seed) {
  std::vector<Layer> layers = random_layers(size, seed);
  for (Layer& layer : layers) {
    layer.parameter_bytes *= kGB;
    layer.output_bytes *= kGB / 8;
  }
  return layers;
}

TEST(DappleSearch, IsAsGoodAsTheBestOfAllPlans) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const int size = 2 + static_cast<int>(seed % 3);
    PublishedCase c(profile(heavy_layers(size, seed), 2), seed % 4 == 0 ? equal_nodes(1, 4, 1) : equal_nodes(2, 2, 1),
                    kDapple, 8);
    c.problem.micro_batch_size = seed % 5 == 0 ? 2 : 1;
    const double best = EveryPlan(c).best();
    const DapplePlan found = dapple_search(c.problem, kNoDeadline);
    EXPECT_NEAR(found.value, best, 1e-12 * best) << seed;
    EXPECT_LE(found.bound, best * (1 + 1e-12)) << seed;
    EXPECT_LE(plan::bound_dapple(c.problem), best * (1 + 1e-12)) << seed;
    EXPECT_TRUE(plan::validate(to_plan(found), c.graph, {4, c.problem.batch}).empty()) << seed;
    EXPECT_NEAR(plan::judge(to_plan(found), c.problem).value, found.value, 1e-12 * best) << seed;
  }
}

// One pipeline on one server, where it is the same which devices a stage has: every division and number of replicas.
double best_on_one_server(const PublishedCase& c) {
  double best = INFINITY;
  const int devices = c.cluster.size();
  each_division(c.graph, devices, [&](const std::vector<int>& stage_of, int stages) {
    if (c.problem.stages && *c.problem.stages != stages) return;
    std::vector<std::vector<OpId>> ops(static_cast<std::size_t>(stages));
    for (std::size_t op = 0; op < stage_of.size(); ++op) {
      ops[static_cast<std::size_t>(stage_of[op])].push_back(static_cast<OpId>(op));
    }
    each_composition(devices, stages, [&](const std::vector<int>& replicas) {
      std::vector<std::vector<int>> dealt;
      int device = 0;
      for (const int count : replicas) {
        std::vector<int>& own = dealt.emplace_back(static_cast<std::size_t>(count));
        std::iota(own.begin(), own.end(), device);
        device += count;
      }
      best = std::min(best, plan::judge(make(ops, {dealt}, c.problem.batch), c.problem).value);
    });
  });
  return best;
}

struct OneServer : PublishedCase {
  OneServer(std::vector<Layer> layers, int devices, std::int64_t micro_batches, std::optional<int> stages = {})
      : PublishedCase(profile(in_a_row(std::move(layers))), equal_nodes(1, devices, 1), kDapple, micro_batches) {
    problem.micro_batch_size = 1;
    problem.pipelines = 1;
    problem.stages = stages;
  }
  static std::vector<Layer> in_a_row(std::vector<Layer> layers) {
    for (std::size_t i = 1; i < layers.size(); ++i) layers[i].reads = {static_cast<int>(i) - 1};
    return layers;
  }
};

// A stage further back hides more of its reduction: of two starts of one block the one with more stages can be the
// better, so that one with fewer must not drop it.
TEST(DappleSearch, AStartWithMoreStagesIsKept) {
  const OneServer c({{1, 0, 0, {}}, {1, 0, 0, {}}, {2, 40 * kGB, 0, {}}}, 4, 4);
  // Two first stages of 1 s and the last on two devices: block 1, fill 4/4, reduction 2·(1/2)·40/3… behind two blocks.
  const double best = best_on_one_server(c);
  const DapplePlan found = dapple_search(c.problem, kNoDeadline);
  EXPECT_NEAR(found.value, best, 1e-12 * best);
  EXPECT_EQ(found.stages.size(), 3U);
}

// With three stages asked for, a start with two leaves only one for the rest, whose reduction is then dear.
TEST(DappleSearch, AStartThatLeavesMoreStagesIsKept) {
  const OneServer c({{1, kGB, 0, {}}, {1, 0, 0, {}}, {1, 40 * kGB, 0, {}}, {1, 40 * kGB, 0, {}}}, 4, 4, 3);
  const double best = best_on_one_server(c);
  const DapplePlan found = dapple_search(c.problem, kNoDeadline);
  EXPECT_NEAR(found.value, best, 1e-12 * best);
  EXPECT_THAT(found.stages,
              testing::ElementsAre(testing::ElementsAre(0, 1), testing::ElementsAre(2), testing::ElementsAre(3)));
}

// Devices taken and devices left are told apart whatever their sum: no plan of chains on one server is lost.
TEST(DappleSearch, OnOneServerOfAnySizeIsAsGoodAsTheBestOfAllPlans) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Random random(seed, "chain on one server");
    std::vector<Layer> layers(3 + seed % 4);
    for (std::uint64_t i = 0; i < layers.size(); ++i) {
      const auto draw = [&](std::uint64_t bound, std::uint64_t what) {
        return static_cast<std::int64_t>(random.below(bound, 10 * i + what));
      };
      layers[i].seconds = static_cast<double>(1 + draw(4, 0));
      layers[i].parameter_bytes = draw(3, 1) == 0 ? 0 : draw(10, 2) * 5 * kGB;
      layers[i].output_bytes = draw(2, 3) == 0 ? 0 : draw(3, 4) * kGB / 4;
    }
    const auto stages = seed % 3 == 0 ? std::optional(2 + static_cast<int>(seed / 12 % 2)) : std::nullopt;
    const OneServer c(std::move(layers), 3 + static_cast<int>(seed / 4 % 3), std::int64_t{1} << seed / 12 % 4, stages);
    const double best = best_on_one_server(c);
    const DapplePlan found = dapple_search(c.problem, kNoDeadline);
    EXPECT_NEAR(found.value, best, 1e-12 * best) << seed;
    EXPECT_LE(found.bound, best * (1 + 1e-12)) << seed;
  }
}

TEST(DappleSearch, KeepsAGivenNumberOfPipelinesAndStages) {
  PublishedCase c(profile(heavy_layers(6, 5), 2), equal_nodes(2, 4, 1), kDapple, 16);
  c.problem.micro_batch_size = 1;
  c.problem.pipelines = 2;
  c.problem.stages = 3;
  const DapplePlan found = dapple_search(c.problem, kNoDeadline);
  EXPECT_EQ(found.pipelines, 2);
  EXPECT_EQ(found.stages.size(), 3u);
  EXPECT_EQ(found.micro_batches, 8);
}

TEST(DappleSearch, AnswersAfterItsDeadlineAndOnManyServers) {
  PublishedCase c(profile(random_layers(80, 9), 2), equal_nodes(8, 4, 1), kDapple, 256);
  c.problem.micro_batch_size = 2;
  const DapplePlan found = dapple_search(c.problem, std::chrono::steady_clock::time_point::min());
  EXPECT_TRUE(found.late);
  ASSERT_FALSE(found.stages.empty());
  EXPECT_TRUE(plan::validate(to_plan(found), c.graph, {32, 256}).empty());
  EXPECT_NEAR(plan::judge(to_plan(found), c.problem).value, found.value, 1e-12 * found.value);
  EXPECT_LE(found.bound, found.value);
}

}  // namespace
}  // namespace millrace::partitioners
