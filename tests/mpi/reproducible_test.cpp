// train.reproducible: any gives the same bits for every number of ranks, pipelines, stages and micro-batches.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/errors.h"
#include "runtime/tree_reduction.h"
#include "tests/mpi/networks.h"
#include "tests/mpi/on_ranks.h"
#include "tests/runtime/programs.h"

namespace millrace::testing {
namespace {

RunSettings any_grid() {
  RunSettings s = twelve_iterations();
  s.train.iterations = 5;
  s.train.any_grid = true;
  s.train.optimizer = {.kind = runtime::OptimizerKind::adamw, .learning_rate = 1e-3, .weight_decay = 0.01};
  s.train.clip_norm = 1.0;
  s.batch = 22;  // no power of two, and 22, 22 and 6 in turn
  s.tail = dataset::Tail::uneven;
  s.evaluate = true;
  s.train.evaluate_every = 2;
  return s;
}

Graph network(const std::string& name) {
  if (name != "gpt") return small_network(name);
  return models::make(
      "gpt",
      {{"layers", "2"}, {"width", "16"}, {"heads", "2"}, {"sequence", "6"}, {"vocabulary", "11"}, {"dropout", "0.1"}});
}

void expect_same_bits(const TrainingRun& a, const TrainingRun& b) {
  if (world_rank() != 0) return;
  ASSERT_EQ(a.rows.size(), b.rows.size());
  for (std::size_t i = 0; i < a.rows.size(); ++i) {
    EXPECT_EQ(a.rows[i].loss, b.rows[i].loss) << "iteration " << i + 1;
    EXPECT_EQ(a.rows[i].gradient_norm, b.rows[i].gradient_norm) << "iteration " << i + 1;
  }
  ASSERT_EQ(a.evaluations.size(), b.evaluations.size());
  for (std::size_t i = 0; i < a.evaluations.size(); ++i) EXPECT_EQ(a.evaluations[i].loss, b.evaluations[i].loss);
  EXPECT_TRUE(a.values == b.values) << "relative difference " << value_difference(a, b);
}

TEST(Reproducible, EveryGridGivesTheBitsOfOneRank) {
  for (const std::string name : {"mlp", "lenet", "gpt"}) {
    const Graph graph = network(name);
    const SmallSource source(graph, 50, 10);
    const TrainingRun alone = on_one_rank(graph, source, any_grid());
    for (const Grid& grid :
         {Grid{1, 1, 5, "gpipe"}, Grid{2, 1, 1, "gpipe"}, Grid{3, 1, 2, "1f1b"}, Grid{1, 2, 3, "1f1b"},
          Grid{1, 4, 22, "hippie"}, Grid{2, 3, 2, "1f1b"}, Grid{3, 2, 7, "gpipe"}, Grid{6, 1, 1, "1f1b"}}) {
      SCOPED_TRACE(fmt::format("{}: {} pipelines, {} stages, {} micro-batches, {}", name, grid.pipelines, grid.stages,
                               grid.micro_batches, grid.schedule));
      expect_same_bits(on_ranks(grid.ranks(), graph, make_plan(graph, grid), source, any_grid()), alone);
    }
  }
}

// Replicas of unequal shares, so that rows of a node lie anywhere; and a split backward.
TEST(Reproducible, UnequalReplicasAndSplitBackwardsToo) {
  for (const std::string name : {"mlp", "gpt"}) {
    SCOPED_TRACE(name);
    const Graph graph = network(name);
    const SmallSource source(graph, 50, 10);
    const TrainingRun alone = on_one_rank(graph, source, any_grid());
    Plan replicas = make_plan(graph, {1, 2, 4, "1f1b"});
    replicas.pipelines[0].stages[0].devices = {0};
    replicas.pipelines[0].stages[1].devices = {1, 2, 3};
    replicas.pipelines[0].stages[1].shares = {0.5, 0.2, 0.3};
    expect_same_bits(on_ranks(4, graph, replicas, source, any_grid()), alone);
    expect_same_bits(on_ranks(3, graph, make_plan(graph, {1, 3, 4, "zb-h1"}), source, any_grid()), alone);
    Plan deferred = make_plan(graph, {2, 2, 4, "1f1b"});
    deferred.schedule_options["deferred_weights"] = "3";
    deferred.bucket_size = 1_KiB;
    expect_same_bits(on_ranks(4, graph, deferred, source, any_grid()), alone);
  }
}

// The other setting does depend on the grid: equality above is not for free.
TEST(Reproducible, TheDefaultDependsOnTheGrid) {
  const Graph graph = network("gpt");
  const SmallSource source(graph, 50, 10);
  RunSettings s = any_grid();
  s.train.any_grid = false;
  const TrainingRun alone = on_one_rank(graph, source, s);
  const TrainingRun grid = on_ranks(6, graph, make_plan(graph, {2, 3, 2, "1f1b"}), source, s);
  if (world_rank() != 0) return;
  EXPECT_NE(alone.values, grid.values);
}

TEST(Reproducible, RunningStatisticsAreRefused) {
  const Graph graph = network("resnet");
  const Program program = runtime::testing::training_program(graph, make_plan(graph, {1, 2, 2, "1f1b"}), 8);
  try {
    runtime::require_tree_reducible(graph, program);
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_NE(std::string(error.what()).find("train.reproducible: any: operator '"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace millrace::testing
