// Updates in parts and updates inside of the backward train what whole updates behind it do.
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/mpi/networks.h"
#include "tests/mpi/on_ranks.h"
#include "tests/mpi/shared_folder.h"

namespace millrace::testing {
namespace {

enum class Optimizer : std::uint8_t { sgd, momentum, adam, adamw };

RunSettings with(Optimizer kind, RunSettings s) {
  switch (kind) {
    case Optimizer::sgd:
      break;
    case Optimizer::momentum:
      s.train.optimizer.momentum = 0.9;
      break;
    case Optimizer::adam:
      s.train.optimizer = {.kind = runtime::OptimizerKind::adam, .learning_rate = 1e-3};
      break;
    case Optimizer::adamw:
      s.train.optimizer = {.kind = runtime::OptimizerKind::adamw, .learning_rate = 1e-3, .weight_decay = 0.1};
      break;
  }
  s.train.iterations = 4;
  return s;
}

RunSettings sharded(RunSettings s) {
  s.lowering.shard_optimizer = true;
  return s;
}

// Three replicas, then two, with rows in proportions that no replica divides.
Plan uneven_replicas(const Graph& graph, std::int64_t micro_batches) {
  Plan plan = make_plan(graph, {1, 2, micro_batches, "1f1b"});
  plan.pipelines[0].stages[0].devices = {0, 1, 2};
  plan.pipelines[0].stages[0].shares = {0.5, 0.3, 0.2};
  plan.pipelines[0].stages[1].devices = {3, 4};
  plan.pipelines[0].stages[1].shares = {0.6, 0.4};
  return plan;
}

TEST(ShardedOptimizer, TrainsWhatOneRankTrains) {
  const auto expect_one = [](const std::string& name, Optimizer kind, const RunSettings& s, const Plan& plan,
                             int ranks) {
    SCOPED_TRACE(fmt::format("{}, optimizer {}, {} ranks", name, static_cast<int>(kind), ranks));
    const Graph graph = small_network(name);
    const SmallSource source(graph, 90, 10);
    expect_equal(on_ranks(ranks, graph, plan, source, sharded(s)), on_one_rank(graph, source, s), 1e-9);
  };
  for (const std::string name : {"mlp", "gpt"}) {  // gpt: the embedding is tied to the head
    const Graph graph = small_network(name);
    RunSettings plain = with(Optimizer::sgd, in_double());
    plain.lowering.hiding = Hiding::update;
    expect_one(name, Optimizer::sgd, plain, make_plan(graph, {6, 1, 1, "gpipe"}), 6);
    for (const Optimizer kind : {Optimizer::momentum, Optimizer::adam, Optimizer::adamw}) {
      if (name == "gpt" && kind == Optimizer::adam) continue;
      RunSettings s = with(kind, in_double());
      s.train.clip_norm = 0.5;
      expect_one(name, kind, s, uneven_replicas(graph, 3), 5);
    }
    RunSettings clipped = with(Optimizer::adamw, in_double());
    clipped.train.clip_norm = 0.5;
    expect_one(name, Optimizer::adamw, clipped, make_plan(graph, {3, 2, 2, "1f1b"}), 6);
  }
}

// Chunks, copies of the model on one rank, split backwards.
TEST(ShardedOptimizer, RanksWithSeveralStagesOfABucketUpdateAllCopies) {
  const Graph graph = small_network("gpt");
  const SmallSource source(graph, 90, 10);
  RunSettings s = with(Optimizer::adamw, in_double());
  s.train.clip_norm = 0.5;
  const TrainingRun one = on_one_rank(graph, source, s);
  for (const std::string schedule : {"interleaved", "zb-h2", "zb-v", "chimera"}) {
    SCOPED_TRACE(schedule);
    expect_equal(on_ranks(4, graph, make_plan(graph, {2, 2, 2, schedule}), source, sharded(s)), one, 1e-9);
  }
}

// Bits: the sum of two is the same in either order, so two owners get the same sums whole and in parts.
TEST(ShardedOptimizer, OfTwoOwnersGivesTheSameBits) {
  for (const std::string name : {"resnet", "gpt"}) {
    const Graph graph = small_network(name);
    const SmallSource source(graph, 90, 10);
    for (const Grid& grid : {Grid{2, 1, 1, "gpipe"}, Grid{2, 2, 3, "1f1b"}}) {
      SCOPED_TRACE(fmt::format("{} x {}", name, grid.stages));
      RunSettings s = with(Optimizer::adamw, in_double());
      s.lowering.hiding = Hiding::update;
      const Plan plan = make_plan(graph, grid);
      const TrainingRun whole = on_ranks(grid.ranks(), graph, plan, source, s);
      const TrainingRun parts = on_ranks(grid.ranks(), graph, plan, source, sharded(s));
      if (world_rank() != 0) continue;
      // A tied parameter of the pipelines has four owners in two stages.
      if (name == "gpt" && grid.stages > 1) {
        EXPECT_LT(value_difference(parts, whole), 1e-9);
      } else {
        EXPECT_TRUE(parts.values == whole.values);
      }
    }
  }
}

TEST(ShardedOptimizer, EachRankKeepsItsPart) {
  const Graph graph = small_network("gpt");
  const SmallSource source(graph, 48, 10);
  RunSettings s = with(Optimizer::adamw, twelve_iterations());
  s.forecast = true;
  for (const int ranks : {2, 5}) {
    const Plan plan = make_plan(graph, {ranks, 1, 1, "gpipe"});
    const TrainingRun whole = on_ranks(ranks, graph, plan, source, s);
    const TrainingRun parts = on_ranks(ranks, graph, plan, source, sharded(s));
    if (world_rank() >= ranks) continue;
    const RankReport& held = parts.outcome.rank;
    EXPECT_EQ(held.optimizer_bytes, parts.forecast.optimizer_bytes);
    EXPECT_EQ(held.peak_bytes(), parts.forecast.peak_bytes());
    const std::int64_t state = whole.outcome.rank.optimizer_bytes;
    // The first owners keep one element more of a bucket: of few buckets, two moments of four bytes.
    EXPECT_NEAR(static_cast<double>(held.optimizer_bytes), static_cast<double>(state) / ranks, 40 * 8);
    EXPECT_EQ(whole.outcome.rank.peak_bytes() - held.peak_bytes(), state - held.optimizer_bytes);
  }
}

// A checkpoint has whole tensors: any grid goes on, in parts or not.
TEST(ShardedOptimizer, CheckpointsAreOfWholeTensors) {
  const Graph graph = small_network("gpt");
  const SmallSource source(graph, 90, 10);
  RunSettings s = with(Optimizer::adamw, in_double());
  s.train.clip_norm = 0.5;
  const Plan uneven = uneven_replicas(graph, 2), pipelines = make_plan(graph, {3, 2, 2, "1f1b"});
  const TrainingRun one = on_one_rank(graph, source, s);
  const auto last_two = [&](TrainingRun run) {
    if (!run.rows.empty()) run.rows.erase(run.rows.begin(), run.rows.begin() + 2);  // told on ranks that train
    return run;
  };
  for (const bool from_parts : {true, false}) {
    SCOPED_TRACE(from_parts ? "from parts" : "into parts");
    const SharedFolder folder;
    RunSettings first = from_parts ? sharded(s) : s;
    first.train.iterations = 2;
    first.train.checkpoint_every = 2;
    first.checkpoints = folder.path();
    on_ranks(5, graph, uneven, source, first);
    patient_barrier();
    RunSettings rest = s;
    rest.checkpoints = folder.path();
    rest.resume = true;
    if (from_parts) {
      expect_equal(on_ranks(1, graph, make_plan(graph, {}), source, rest), last_two(one), 1e-9);
    }
    expect_equal(on_ranks(6, graph, pipelines, source, sharded(rest)), last_two(one), 1e-9);
  }
}

TEST(FusedUpdates, GiveTheSameBitsInLessMemory) {
  for (const std::string name : {"resnet", "gpt"}) {
    const Graph graph = small_network(name);
    const SmallSource source(graph, 50, 10);
    for (const Grid& grid : {Grid{1, 1, 1, "gpipe"}, Grid{3, 1, 1, "gpipe"}, Grid{1, 1, 1, "gpipe", Recompute::all},
                             Grid{1, 2, 3, "zb-h1"}}) {
      SCOPED_TRACE(fmt::format("{}, {} x {} x {}", name, grid.pipelines, grid.stages, grid.micro_batches));
      RunSettings s = with(Optimizer::adamw, in_double());
      s.batch = 22;
      s.tail = dataset::Tail::uneven;
      s.forecast = true;
      s.lowering.hiding = Hiding::update;
      s.evaluate = true;
      RunSettings apart = s;
      apart.lowering.fuse_updates = false;
      Plan plan = make_plan(graph, grid);
      plan.bucket_size = 1_KiB;
      const TrainingRun fused = on_ranks(grid.ranks(), graph, plan, source, s);
      const TrainingRun plain = on_ranks(grid.ranks(), graph, plan, source, apart);
      if (world_rank() >= grid.ranks()) continue;
      EXPECT_EQ(fused.outcome.rank.peak_bytes(), fused.forecast.peak_bytes());
      EXPECT_LE(fused.outcome.rank.gradients_bytes, plain.outcome.rank.gradients_bytes);
      if (grid.ranks() == 1 && grid.micro_batches == 1) {
        EXPECT_LT(fused.outcome.rank.gradients_bytes, plain.outcome.rank.gradients_bytes);
      }
      if (world_rank() != 0) continue;
      EXPECT_EQ(row_difference(fused, plain), 0);
      EXPECT_TRUE(fused.values == plain.values);
    }
  }
}

}  // namespace
}  // namespace millrace::testing
