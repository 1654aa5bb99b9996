// Training with products on bf16 operands as they lie: equal on any plan, learns as fp32 does, forecasts its memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/mpi/native_variants.h"
#include "tests/mpi/networks.h"
#include "tests/mpi/on_ranks.h"

namespace millrace::testing {
namespace {

RunSettings with_native_products(const Graph& graph) {
  RunSettings s;
  s.batch = 24;
  s.train.iterations = 12;
  s.train.optimizer = {.kind = runtime::OptimizerKind::sgd, .learning_rate = 0.01, .momentum = 0.9};
  s.train.precision = kernels::Precision::bf16;
  s.train.variants = all_native(graph);
  return s;
}

TEST(NativeBf16, AnyPlanEqualsOneRankAndCopiesWithinRounding) {
  for (const std::string name : {"mlp", "gpt"}) {
    const Graph graph = small_network(name);
    const SmallSource source(graph, 96, 10);
    RunSettings s = with_native_products(graph);
    const TrainingRun one = on_one_rank(graph, source, s);
    RunSettings copies = s;
    copies.train.variants = nullptr;
    const TrainingRun copied = on_one_rank(graph, source, copies);
    if (world_rank() == 0) {
      EXPECT_FALSE(s.train.variants->used().empty());
      EXPECT_LT(row_difference(one, copied), 1e-3);
      EXPECT_LT(value_difference(one, copied), 1e-3);
    }
    for (const Grid& grid : {Grid{2, 1, 2, "gpipe"}, Grid{3, 2, 2, "1f1b"}, Grid{1, 4, 3, "zb-h1"},
                             Grid{2, 2, 3, "1f1b", Recompute::all}}) {
      SCOPED_TRACE(fmt::format("{}: {} pipelines x {} stages, {}", name, grid.pipelines, grid.stages, grid.schedule));
      const TrainingRun split = on_ranks(grid.ranks(), graph, make_plan(graph, grid), source, s);
      if (world_rank() != 0) continue;
      EXPECT_LT(row_difference(split, one), 1e-3);
      EXPECT_LT(value_difference(split, one), 1e-3);
    }
  }
}

TEST(NativeBf16, LearnsAsFp32Does) {
  for (const std::string name : {"mlp", "gpt"}) {
    SCOPED_TRACE(name);
    const Graph graph = small_network(name);
    const SmallSource source(graph, 48, 10);
    RunSettings s = with_native_products(graph);
    s.train.iterations = 60;
    s.train.optimizer.learning_rate = 0.05;
    const Plan plan = make_plan(graph, {2, 2, 2, "1f1b"});
    const TrainingRun narrow = on_ranks(4, graph, plan, source, s);
    s.train.precision = kernels::Precision::fp32;
    const TrainingRun single = on_ranks(4, graph, plan, source, s);
    if (world_rank() != 0) continue;
    EXPECT_LT(single.rows.back().loss, 0.95 * single.rows.front().loss);
    double furthest = 0;
    for (std::size_t i = 0; i < single.rows.size(); ++i) {
      furthest = std::max(furthest, std::abs(narrow.rows[i].loss - single.rows[i].loss));
    }
    EXPECT_LT(furthest, 0.02 * single.rows.front().loss);
    EXPECT_GT(furthest, 0);
  }
}

TEST(NativeBf16, MemoryIsForecast) {
  for (const std::string name : {"mlp", "gpt"}) {
    const Graph graph = small_network(name);
    const SmallSource source(graph, 96, 10);
    RunSettings s = with_native_products(graph);
    s.forecast = true;
    s.train.iterations = 1;
    const TrainingRun run = on_ranks(4, graph, make_plan(graph, {1, 4, 3, "1f1b"}), source, s);
    if (world_rank() >= 4) continue;
    EXPECT_EQ(run.forecast.activations_bytes, run.outcome.rank.activations_bytes);
    EXPECT_EQ(run.forecast.peak_bytes(), run.outcome.rank.peak_bytes());
  }
}

}  // namespace
}  // namespace millrace::testing
