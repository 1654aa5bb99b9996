// Training between real ranks where plans are uneven: replica counts, tails, cuts, evaluation, skipped steps.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "comm/shared_error.h"
#include "tests/mpi/networks.h"
#include "tests/mpi/on_ranks.h"

namespace millrace::testing {
namespace {

// Two stages with `first` and `second` replicas.
Plan replicated(const Graph& graph, std::vector<double> first, std::vector<double> second, std::int64_t micro_batches) {
  Plan plan = make_plan(graph, {1, 2, micro_batches, "1f1b"});
  int device = 0;
  for (const auto& [stage, shares] : {std::pair{0, first}, std::pair{1, second}}) {
    Stage& s = plan.pipelines[0].stages[static_cast<std::size_t>(stage)];
    s.devices.resize(shares.size());
    std::iota(s.devices.begin(), s.devices.end(), device);
    s.shares = shares;
    device += static_cast<int>(shares.size());
  }
  return plan;
}

TEST(Training, UnequalReplicaCountsExchangeExactlyTheirRows) {
  const Graph graph = small_network("gpt");
  const SmallSource source(graph, 90, 10);
  RunSettings s = twelve_iterations();
  s.batch = 23;
  const TrainingRun one = on_one_rank(graph, source, s);
  expect_equal(on_ranks(5, graph, replicated(graph, {0.3, 0.5, 0.2}, {0.6, 0.4}, 3), source, s), one);
  expect_equal(on_ranks(5, graph, replicated(graph, {0.5, 0.5}, {1.0 / 3, 1.0 / 3, 1.0 / 3}, 4), source, s), one);
}

TEST(Training, ReplicaWithoutRowsStillTakesPartInEverySum) {
  const Graph graph = small_network("mlp");
  const SmallSource source(graph, 90, 10);
  RunSettings s = twelve_iterations();
  s.batch = 5;  // micro-batches of one row: two of three replicas get none
  const TrainingRun one = on_one_rank(graph, source, s);
  expect_equal(on_ranks(4, graph, replicated(graph, {0.4, 0.3, 0.3}, {1.0}, 5), source, s), one);
}

TEST(Training, TailsFollowTheirPolicy) {
  const Graph graph = small_network("mlp");
  const SmallSource source(graph, 23, 10);
  RunSettings s = twelve_iterations();
  s.batch = 8;
  s.train.iterations = 6;
  for (const auto& [tail, last] :
       {std::pair{dataset::Tail::drop, std::int64_t{48}}, std::pair{dataset::Tail::pad, std::int64_t{46}},
        std::pair{dataset::Tail::uneven, std::int64_t{46}}}) {
    s.tail = tail;
    const TrainingRun one = on_one_rank(graph, source, s);
    const TrainingRun split = on_ranks(4, graph, make_plan(graph, {2, 2, 3, "1f1b"}), source, s);
    expect_equal(split, one);
    if (world_rank() == 0) {
      EXPECT_EQ(split.rows.back().samples, last);
      EXPECT_FALSE(split.outcome.last_iteration.rows.empty());
    }
  }
}

TEST(Training, PipelinesMayCutTheModelDifferently) {
  const Graph graph = small_network("gpt");
  const SmallSource source(graph, 90, 10);
  const RunSettings s = twelve_iterations();
  Plan plan = make_plan(graph, {2, 2, 2, "1f1b"});
  auto& first = plan.pipelines[0].stages;
  const OpId moved = 5, cut = first[1].ops.front() - moved;
  first[0].ops = OpList::range(0, cut);
  first[1].ops = OpList::range(cut, static_cast<OpId>(graph.size()));
  plan.pipelines[0].share = 0.625;
  plan.pipelines[1].share = 0.375;
  expect_equal(on_ranks(4, graph, plan, source, s), on_one_rank(graph, source, s));
}

TEST(Training, ClippingUsesTheOneGlobalNorm) {
  const Graph graph = small_network("gpt");
  const SmallSource source(graph, 90, 10);
  RunSettings s = twelve_iterations();
  s.train.clip_norm = 0.5;
  const TrainingRun one = on_one_rank(graph, source, s);
  if (world_rank() == 0) {
    EXPECT_GT(one.rows.front().gradient_norm, 0.5);
  }
  expect_equal(on_ranks(6, graph, make_plan(graph, {2, 3, 2, "gpipe"}), source, s), one);
}

TEST(Training, AClippedStepIsAsLongAsTheLimit) {
  const Graph graph = small_network("gpt");
  const SmallSource source(graph, 90, 10);
  RunSettings s = twelve_iterations();
  s.train.iterations = 1;
  s.train.optimizer.learning_rate = 0;
  const TrainingRun start = on_one_rank(graph, source, s);
  s.train.optimizer.learning_rate = 0.05;
  for (const double limit : {0.25, 1e6}) {
    s.train.clip_norm = limit;
    const TrainingRun moved = on_ranks(4, graph, make_plan(graph, {2, 2, 2, "1f1b"}), source, s);
    if (world_rank() != 0) continue;
    double squares = 0;
    for (std::size_t t = 0; t < start.values.size(); ++t) {
      for (std::size_t i = 0; i < start.values[t].size(); ++i) {
        squares += std::pow(moved.values[t][i] - start.values[t][i], 2);
      }
    }
    const double norm = start.rows[0].gradient_norm;
    EXPECT_GT(norm, 0.25);
    EXPECT_NEAR(std::sqrt(squares), 0.05 * std::min(norm, limit), 1e-6);
  }
}

TEST(Training, EvaluationChangesNothingAndDoesNotDependOnTheSplit) {
  const Graph graph = small_network("resnet");
  const SmallSource source(graph, 90, 37);
  RunSettings s = twelve_iterations();
  s.train.iterations = 4;
  const Plan plan = make_plan(graph, {1, 3, 4, "1f1b"});
  const TrainingRun without = on_ranks(3, graph, plan, source, s);
  s.evaluate = true;
  s.train.evaluate_every = 1;
  const TrainingRun with = on_ranks(3, graph, plan, source, s);
  const TrainingRun other = on_ranks(1, graph, make_plan(graph, {1, 1, 4, "1f1b"}), source, s);
  if (world_rank() != 0) return;
  EXPECT_EQ(with.values, without.values);
  ASSERT_EQ(with.evaluations.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(with.evaluations[i].loss, other.evaluations[i].loss, 1e-4 * other.evaluations[i].loss);
    EXPECT_EQ(with.evaluations[i].accuracy, other.evaluations[i].accuracy);
  }
}

// In the default mode, and without batch norm, whose running statistics would.
TEST(Training, EvaluationDoesNotDependOnTheMicroBatches) {  // REPORTS R09
  const Graph graph = small_network("mlp");
  const SmallSource source(graph, 90, 37);
  RunSettings s = twelve_iterations();
  s.evaluate = true;
  s.train.evaluate_every = 3;
  const TrainingRun one = on_one_rank(graph, source, s);
  for (const std::int64_t m : {1, 3, 8}) {
    const TrainingRun split = on_ranks(3, graph, make_plan(graph, {1, 3, m, "1f1b"}), source, s);
    if (world_rank() != 0) continue;
    ASSERT_EQ(split.evaluations.size(), one.evaluations.size());
    for (std::size_t i = 0; i < one.evaluations.size(); ++i) {
      EXPECT_NEAR(split.evaluations[i].loss, one.evaluations[i].loss, 1e-5 * one.evaluations[i].loss) << m;
    }
  }
}

TEST(Training, StageWithoutParametersTakesPart) {  // REPORTS P07
  const Graph graph = small_network("lenet");
  const SmallSource source(graph, 90, 10);
  RunSettings s = twelve_iterations();
  s.train.clip_norm = 1.0;
  Plan plan = make_plan(graph, {1, 3, 2, "1f1b"});
  auto& stages = plan.pipelines[0].stages;
  stages[0].ops = {0};
  stages[1].ops = {1};  // max-pool alone
  stages[2].ops = OpList::range(2, static_cast<OpId>(graph.size()));
  expect_equal(on_ranks(3, graph, plan, source, s), on_one_rank(graph, source, s));
}

class PoisonedSource final : public SmallSource {
 public:
  using SmallSource::read_inputs;
  using SmallSource::SmallSource;
  void read_inputs(dataset::Split split, std::span<const std::int64_t> ids, float* to) const override {
    SmallSource::read_inputs(split, ids, to);
    const auto size = static_cast<std::size_t>(format().input_size());
    for (std::size_t r = 0; r < ids.size(); ++r) {
      if (split == dataset::Split::train && ids[r] == 7) to[r * size] = NAN;
    }
  }
};

// One of the two batches of an epoch has that sample.
TEST(Training, WhatOneReplicaAloneSeesIsSkippedByAll) {  // REPORTS N10
  const Graph graph = small_network("mlp");
  const PoisonedSource source(graph, 48, 10);
  const TrainingRun one = on_one_rank(graph, source, twelve_iterations());
  for (const Grid& grid : {Grid{2, 1, 2, "1f1b"}, Grid{1, 2, 3, "1f1b"}, Grid{2, 2, 2, "zb-h1"}}) {
    SCOPED_TRACE(grid.schedule);
    const TrainingRun split = on_ranks(grid.ranks(), graph, make_plan(graph, grid), source, twelve_iterations());
    if (world_rank() >= grid.ranks()) continue;
    EXPECT_EQ(std::count_if(split.rows.begin(), split.rows.end(), [](const auto& row) { return row.skipped; }), 6);
    if (world_rank() != 0) continue;
    for (std::size_t i = 0; i < one.rows.size(); ++i) EXPECT_EQ(split.rows[i].skipped, one.rows[i].skipped) << i;
    EXPECT_LT(value_difference(split, one), 1e-5);
  }
}

TEST(Training, AnInfiniteLossIsSkippedByAllAndThenEndsTheRun) {
  const Graph graph = small_network("mlp");
  const SmallSource source(graph, 90, 10);
  RunSettings s = twelve_iterations();
  s.train.optimizer.learning_rate = 1e30;
  s.train.maximum_skips = 3;
  bool failed = false;
  try {
    on_ranks(4, graph, make_plan(graph, {2, 2, 2, "1f1b"}), source, s);
  } catch (const comm::SharedError& error) {
    failed = true;
    EXPECT_NE(std::string(error.what()).find("3 iterations in a row"), std::string::npos) << error.what();
  }
  EXPECT_EQ(failed, world_rank() < 4);
  if (failed) patient_barrier();
}

}  // namespace
}  // namespace millrace::testing
