// What belongs to a sample stays with it: its dropout mask on any grid, and its absence where it is padding.
#include <cmath>

#include <gtest/gtest.h>

#include "tests/mpi/networks.h"
#include "tests/mpi/on_ranks.h"

namespace millrace::testing {
namespace {

Graph gpt_with_dropout(const std::string& probability) {
  return models::make("gpt", {{"layers", "2"},
                              {"width", "16"},
                              {"heads", "2"},
                              {"sequence", "6"},
                              {"vocabulary", "11"},
                              {"dropout", probability}});
}

TEST(Samples, DropoutMasksFollowTheSampleNotTheGrid) {
  const Graph graph = gpt_with_dropout("0.1");
  const SmallSource source(graph, 50, 10);  // two batches and a rest: samples change their rows between epochs
  RunSettings s = twelve_iterations();
  s.batch = 22;
  s.tail = dataset::Tail::uneven;
  const TrainingRun one = on_one_rank(graph, source, s);
  expect_equal(on_ranks(4, graph, make_plan(graph, {2, 2, 3, "1f1b"}), source, s), one);
  expect_equal(on_ranks(3, graph, make_plan(graph, {1, 3, 4, "gpipe"}), source, s), one);

  const Graph without = gpt_with_dropout("0");
  const TrainingRun other = on_one_rank(without, source, s);
  if (world_rank() == 0) {
    EXPECT_GT(row_difference(other, one), 1e-3) << "dropout dropped nothing";
  }
}

TEST(Samples, DropoutDrawsAnewInEveryStep) {
  // One sample, no learning: only the masks differ between the steps.
  const Graph graph = gpt_with_dropout("0.5");
  const SmallSource source(graph, 1, 1);
  RunSettings s = twelve_iterations();
  s.batch = 1;
  s.train.optimizer.learning_rate = 0;
  const TrainingRun one = on_one_rank(graph, source, s);
  if (world_rank() != 0) return;
  EXPECT_NE(one.rows[0].loss, one.rows[1].loss);
  EXPECT_NE(one.rows[1].loss, one.rows[2].loss);
}

// Batch norm sees the valid rows of its micro-batch only, so a padded batch trains like the short one (METHODS 4).
TEST(Samples, PaddingEntersNoLossNoGradientAndNoStatistic) {
  const Graph graph = small_network("resnet");
  const SmallSource source(graph, 23, 10);  // batches of 8, 8 and 7
  RunSettings pad = twelve_iterations(), uneven = twelve_iterations();
  pad.batch = uneven.batch = 8;
  pad.tail = dataset::Tail::pad;
  uneven.tail = dataset::Tail::uneven;
  expect_equal(on_one_rank(graph, source, pad), on_one_rank(graph, source, uneven));
  // 8 and 7 rows split alike where they are cut in two: 4 + 4 and 4 + 3.
  const Plan stages = make_plan(graph, {1, 3, 1, "1f1b"}), pipelines = make_plan(graph, {2, 2, 1, "1f1b"});
  expect_equal(on_ranks(3, graph, stages, source, pad), on_ranks(3, graph, stages, source, uneven));
  expect_equal(on_ranks(4, graph, pipelines, source, pad), on_ranks(4, graph, pipelines, source, uneven));
}

TEST(Samples, MicroBatchOfPaddingAloneChangesNothing) {
  // Batches of 12 and a rest of 2: with 4 micro-batches of 3 rows the last three of the padded batch are all padding.
  for (const char* network : {"mlp", "resnet"}) {
    const Graph graph = small_network(network);
    const SmallSource source(graph, 26, 10);
    RunSettings s = twelve_iterations();
    s.batch = 12;
    s.tail = dataset::Tail::pad;
    const TrainingRun one = on_ranks(1, graph, make_plan(graph, {1, 1, 4, "gpipe"}), source, s);
    const TrainingRun split = on_ranks(4, graph, make_plan(graph, {2, 2, 2, "1f1b"}), source, s);
    expect_equal(split, one);
    if (world_rank() == 0) {
      for (const auto& values : one.values) {
        for (const double value : values) ASSERT_TRUE(std::isfinite(value)) << network;
      }
    }
  }
}

}  // namespace
}  // namespace millrace::testing
