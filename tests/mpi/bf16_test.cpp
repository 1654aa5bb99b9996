// Training in bf16: any plan is one rank up to the order of sums, learns as fp32 does, and shares its checkpoints.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/errors.h"
#include "runtime/supported.h"
#include "tests/mpi/networks.h"
#include "tests/mpi/on_ranks.h"
#include "tests/mpi/shared_folder.h"

namespace millrace::testing {
namespace {

constexpr std::int64_t kBatch = 24;  // batch norm: divides by pipelines times micro-batches of every grid

RunSettings in_bf16(const std::string& kernels) {
  RunSettings s = twelve_iterations();
  s.train.precision = kernels::Precision::bf16;
  s.train.kernels = kernels;
  s.train.optimizer.learning_rate = 0.01;
  s.train.optimizer.momentum = 0.9;
  s.batch = kBatch;
  return s;
}

std::string text_of(const std::string& network, const Grid& grid) {
  return fmt::format("{}: {} pipelines x {} stages x {} micro-batches, {}", network, grid.pipelines, grid.stages,
                     grid.micro_batches, grid.schedule);
}

TEST(Bf16Training, StagesAloneChangeNoBit) {
  for (const std::string& name : small_networks()) {
    const Graph graph = small_network(name);
    const SmallSource source(graph, 96, 10);
    const TrainingRun whole = on_ranks(1, graph, make_plan(graph, {1, 1, 4, "gpipe"}), source, in_bf16("reference"));
    for (const Grid& grid :
         {Grid{1, 2, 4, "1f1b"}, Grid{1, 4, 4, "1f1b", Recompute::all}, Grid{1, 3, 4, "hippie"}, Grid{1, 2, 4, "zb-h1"},
          Grid{1, 2, 4, "interleaved", Recompute::chosen}, Grid{1, 1, 4, "interleaved"}}) {
      SCOPED_TRACE(text_of(name, grid));
      const TrainingRun split = on_ranks(grid.ranks(), graph, make_plan(graph, grid), source, in_bf16("reference"));
      if (world_rank() != 0) continue;
      EXPECT_EQ(row_difference(split, whole), 0);
      EXPECT_EQ(split.values, whole.values);
    }
  }
}

// Sums in another order may round to the next number of eight bits, and what follows from that grows.
TEST(Bf16Training, AnyPlanEqualsOneRankWithinRounding) {
  for (const std::string kernels : {"auto", "reference"}) {
    for (const std::string& name : small_networks()) {
      const Graph graph = small_network(name);
      const SmallSource source(graph, 96, 10);
      for (const Grid& grid : {Grid{2, 1, 2, "gpipe"}, Grid{3, 2, 2, "1f1b"}, Grid{1, 4, 3, "1f1b", Recompute::all},
                               Grid{2, 2, 3, "hippie"}, Grid{2, 3, 3, "interleaved", Recompute::chosen}}) {
        SCOPED_TRACE(kernels + ", " + text_of(name, grid));
        const Grid same_rows{1, 1, name == "resnet" ? grid.pipelines * grid.micro_batches : 1, "gpipe"};
        const TrainingRun one = on_ranks(1, graph, make_plan(graph, same_rows), source, in_bf16(kernels));
        const TrainingRun split = on_ranks(grid.ranks(), graph, make_plan(graph, grid), source, in_bf16(kernels));
        if (world_rank() != 0) continue;
        EXPECT_LT(row_difference(split, one), 1e-3);
        EXPECT_LT(value_difference(split, one), 1e-3);
      }
    }
  }
}

// A sample's results are the same in any micro-batch of reference kernels: what differs is the order of fp32 sums.
TEST(Bf16Training, TheFirstGradientsAreThoseOfOneRank) {
  RunSettings s = in_bf16("reference");
  s.train.iterations = 1;
  for (const std::string name : {"mlp", "lenet", "gpt"}) {
    const Graph graph = small_network(name);
    const SmallSource source(graph, 96, 10);
    const TrainingRun one = on_one_rank(graph, source, s);
    for (const Grid& grid : {Grid{2, 1, 2, "gpipe"}, Grid{3, 2, 2, "1f1b"}, Grid{1, 4, 3, "hippie"}}) {
      SCOPED_TRACE(text_of(name, grid));
      expect_equal(on_ranks(grid.ranks(), graph, make_plan(graph, grid), source, s), one, 1e-6);
    }
  }
}

TEST(Bf16Training, LearnsAsFp32Does) {
  for (const std::string& name : small_networks()) {
    SCOPED_TRACE(name);
    const Graph graph = small_network(name);
    const SmallSource source(graph, 48, 10);
    RunSettings s = in_bf16("auto");
    s.train.iterations = 60;
    s.train.optimizer.learning_rate = 0.05;
    const Plan plan = make_plan(graph, {2, 2, 2, "1f1b"});
    const TrainingRun narrow = on_ranks(4, graph, plan, source, s);
    s.train.precision = kernels::Precision::fp32;
    const TrainingRun single = on_ranks(4, graph, plan, source, s);
    if (world_rank() != 0) continue;
    EXPECT_LT(single.rows.back().loss, 0.95 * single.rows.front().loss);
    EXPECT_NEAR(narrow.rows.back().loss, single.rows.back().loss, 0.02 * single.rows.front().loss);
  }
}

TEST(Bf16Training, TheUnitOfWorkGivesTheBitsOfOneRank) {
  RunSettings s = in_bf16("auto");
  s.train.any_grid = true;
  s.train.iterations = 5;
  s.batch = 22;
  s.tail = dataset::Tail::uneven;
  for (const std::string name : {"lenet", "gpt"}) {
    const Graph graph = small_network(name);
    const SmallSource source(graph, 50, 10);
    const TrainingRun one = on_one_rank(graph, source, s);
    for (const Grid& grid : {Grid{2, 1, 3, "gpipe"}, Grid{1, 4, 5, "1f1b"}, Grid{3, 2, 2, "hippie"}}) {
      SCOPED_TRACE(text_of(name, grid));
      const TrainingRun split = on_ranks(grid.ranks(), graph, make_plan(graph, grid), source, s);
      if (world_rank() != 0) continue;
      EXPECT_EQ(row_difference(split, one), 0);
      EXPECT_EQ(split.values, one.values);
    }
  }
}

// Weights and what the optimizer keeps are fp32 in both.
TEST(Bf16Training, CheckpointsAreThoseOfFp32) {
  const Graph graph = small_network("resnet");
  const SmallSource source(graph, 96, 10);
  const Plan plan = make_plan(graph, {2, 2, 3, "1f1b"});
  for (const auto& [before, after] : {std::pair{kernels::Precision::fp32, kernels::Precision::bf16},
                                      std::pair{kernels::Precision::bf16, kernels::Precision::fp32}}) {
    const SharedFolder folder;
    RunSettings s = in_bf16("auto");
    s.train.checkpoint_every = 5;
    s.checkpoints = folder.path();
    s.train.iterations = 5;
    s.train.precision = before;
    const TrainingRun first = on_ranks(4, graph, plan, source, s);
    s.resume = true;
    s.train.precision = after;
    const TrainingRun loaded = on_ranks(4, graph, plan, source, s);  // nothing is left to do
    s.train.iterations = 7;
    const TrainingRun rest = on_ranks(4, graph, plan, source, s);
    s.resume = false;
    s.checkpoints.clear();
    s.train.precision = before;
    TrainingRun whole = on_ranks(4, graph, plan, source, s);
    if (world_rank() != 0) continue;
    EXPECT_EQ(loaded.values, first.values);
    ASSERT_EQ(rest.rows.size(), 2U);
    whole.rows.erase(whole.rows.begin(), whole.rows.begin() + 5);
    EXPECT_LT(row_difference(rest, whole), 5e-2);
    EXPECT_GT(row_difference(rest, whole), 0);
  }
}

TEST(Bf16Training, HalvesMessagesAndTensorsAndNothingElse) {
  RunSettings s = in_bf16("reference");
  s.forecast = true;
  s.train.iterations = 1;
  for (const std::string& name : small_networks()) {
    SCOPED_TRACE(name);
    const Graph graph = small_network(name);
    const SmallSource source(graph, 96, 10);
    const Plan plan = make_plan(graph, {1, 4, 3, "1f1b"});
    s.train.precision = kernels::Precision::bf16;
    const TrainingRun narrow = on_ranks(4, graph, plan, source, s);
    s.train.precision = kernels::Precision::fp32;
    const TrainingRun single = on_ranks(4, graph, plan, source, s);
    if (world_rank() >= 4) continue;
    EXPECT_EQ(narrow.outcome.rank.weights_bytes, single.outcome.rank.weights_bytes);
    EXPECT_EQ(narrow.outcome.rank.gradients_bytes, single.outcome.rank.gradients_bytes);
    EXPECT_EQ(narrow.outcome.rank.optimizer_bytes, single.outcome.rank.optimizer_bytes);
    EXPECT_EQ(2 * narrow.outcome.rank.buffers_bytes, single.outcome.rank.buffers_bytes);
    EXPECT_EQ(narrow.forecast.activations_bytes, narrow.outcome.rank.activations_bytes);
    EXPECT_EQ(narrow.forecast.peak_bytes(), narrow.outcome.rank.peak_bytes());
    EXPECT_LT(narrow.outcome.rank.activations_bytes, single.outcome.rank.activations_bytes);
  }
}

TEST(Bf16Training, RefusesStagesThatSeveralDevicesShare) {
  Program program;
  program.stages.emplace_back().tensor_parallel = 2;
  EXPECT_THAT([&] { runtime::require_supported(program, kernels::Precision::bf16); },
              ::testing::ThrowsMessage<InvalidInput>(::testing::HasSubstr("allowed with bf16: tensor_parallel 1")));
}

}  // namespace
}  // namespace millrace::testing
