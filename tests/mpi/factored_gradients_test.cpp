// Updates from the factors of a gradient train what the gradient trains.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/mpi/native_variants.h"
#include "tests/mpi/networks.h"
#include "tests/mpi/on_ranks.h"

namespace millrace::testing {
namespace {

// The weight of linear1 is 4 MiB in fp32: 1024 times 1024.
Graph wide_mlp() { return models::make("mlp", {{"inputs", "12"}, {"hidden", "[1024, 1024]"}, {"classes", "5"}}); }

RunSettings factored(RunSettings s) {
  s.lowering.hiding = Hiding::update;
  s.train.iterations = 3;
  s.train.optimizer.momentum = 0.9;
  s.train.optimizer.weight_decay = 1e-3;
  s.batch = 9;
  s.forecast = true;
  return s;
}

RunSettings whole(RunSettings s) {
  s.lowering.factor_gradients = false;
  return s;
}

// Replicas of a stage with unequal rows, pipelines, several micro-batches, halves of the backward, several stages of a
// rank, a shorter last batch.
TEST(FactoredGradients, TrainWhatOneRankTrains) {
  const Graph graph = wide_mlp();
  const SmallSource source(graph, 22, 4);
  RunSettings s = factored(in_double());
  s.tail = dataset::Tail::uneven;
  const TrainingRun one = on_one_rank(graph, source, whole(s));
  for (const Grid& grid :
       {Grid{1, 1, 1, "gpipe"}, Grid{3, 1, 1, "gpipe"}, Grid{2, 1, 2, "1f1b"}, Grid{1, 2, 4, "1f1b"},
        Grid{1, 2, 2, "zb-h1"}, Grid{1, 2, 2, "interleaved"}, Grid{1, 2, 2, "chimera"}, Grid{2, 2, 3, "1f1b"}}) {
    SCOPED_TRACE(fmt::format("{} pipelines, {} stages, {}", grid.pipelines, grid.stages, grid.schedule));
    const TrainingRun run = on_ranks(grid.ranks(), graph, make_plan(graph, grid), source, s);
    expect_equal(run, one, 1e-9);
    if (world_rank() >= grid.ranks()) continue;
    EXPECT_EQ(run.forecast.gradients_bytes, run.outcome.rank.gradients_bytes);
    EXPECT_EQ(run.forecast.peak_bytes(), run.outcome.rank.peak_bytes());
  }
}

// The kernels of oneDNN; without replicas every step is of the same rows in the same order.
TEST(FactoredGradients, TakeLessMemoryInSinglePrecision) {
  const Graph graph = wide_mlp();
  const SmallSource source(graph, 18, 4);
  const RunSettings s = factored(twelve_iterations());
  const Grid grid{2, 1, 2, "1f1b"};
  const TrainingRun run = on_ranks(2, graph, make_plan(graph, grid), source, s);
  const TrainingRun plain = on_ranks(2, graph, make_plan(graph, grid), source, whole(s));
  expect_equal(run, plain);
  if (world_rank() >= 2) return;
  EXPECT_EQ(run.forecast.gradients_bytes, run.outcome.rank.gradients_bytes);
  constexpr std::int64_t kFloat = 4, kWhole = 1024 * 1024, kPart = 1 << 19, kFactors = 9 * 2048;
  EXPECT_EQ(plain.outcome.rank.gradients_bytes - run.outcome.rank.gradients_bytes,
            kFloat * (kWhole - kPart - kFactors));
}

// Of operands in bf16 that are multiplied by way of copies, or as they lie: factors are in fp32 all the same. A sum in
// another order may round a weight to another number of eight bits.
TEST(FactoredGradients, AreKeptOfBf16) {
  const Graph graph = wide_mlp();
  const SmallSource source(graph, 18, 4);
  RunSettings s = factored(twelve_iterations());
  s.train.precision = kernels::Precision::bf16;
  const Grid grid{2, 1, 2, "1f1b"};
  const Plan plan = make_plan(graph, grid);
  for (const auto& variants : {std::shared_ptr<kernels::Variants>(), all_native(graph)}) {
    SCOPED_TRACE(variants ? "as they lie" : "copies");
    s.train.variants = variants;
    const TrainingRun run = on_ranks(grid.ranks(), graph, plan, source, s);
    const TrainingRun plain = on_ranks(grid.ranks(), graph, plan, source, whole(s));
    if (world_rank() >= grid.ranks()) continue;
    EXPECT_EQ(run.forecast.gradients_bytes, run.outcome.rank.gradients_bytes);
    EXPECT_LT(run.outcome.rank.gradients_bytes, plain.outcome.rank.gradients_bytes);
    if (world_rank() > 0) continue;
    EXPECT_LT(row_difference(run, plain), 1e-3);
    EXPECT_LT(value_difference(run, plain), 1e-3);
  }
}

}  // namespace
}  // namespace millrace::testing
