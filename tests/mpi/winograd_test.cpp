// Plans train what one rank trains with every variant of the kernels on, and `any` uses none of them.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "graph/graph_builder.h"
#include "schedules/registry.h"
#include "tests/mpi/forced_variants.h"
#include "tests/mpi/on_ranks.h"

namespace millrace::testing {
namespace {

constexpr std::int64_t kBatch = 24;

RunSettings with_variants(const std::shared_ptr<kernels::Variants>& variants) {
  RunSettings s;
  s.batch = kBatch;
  s.train.iterations = 10;
  s.train.optimizer = {
      .kind = runtime::OptimizerKind::sgd, .learning_rate = 0.01, .momentum = 0.9, .weight_decay = 0.01};
  s.train.variants = variants;
  return s;
}

/// Convolutions without batch norm, which `any` refuses.
Graph convolutions() {
  GraphBuilder builder("convolutions");
  TensorId x = builder.input("input", {.dims = {3, 8, 8}});
  const TensorId labels = builder.label("labels", {.dims = {}, .element = ElementType::index});
  for (int i = 0; i < 3; ++i) {
    x = builder.add({.name = fmt::format("conv{}", i),
                     .kind = "conv2d",
                     .inputs = {x},
                     .attributes = {{"out_channels", 16}, {"kernel", Dims{3, 3}}, {"padding", Dims{1, 1}}}});
    x = builder.add({.name = fmt::format("relu{}", i), .kind = "relu", .inputs = {x}});
  }
  x = builder.add({.name = "flatten", .kind = "flatten", .inputs = {x}});
  x = builder.add({.name = "head", .kind = "linear", .inputs = {x}, .attributes = {{"out_features", 5}}});
  builder.add({.name = "loss", .kind = "cross_entropy", .inputs = {x, labels}});
  return builder.build();
}

// Batch norm normalises within micro-batches, so one rank has the same ones. A ReLU may take its other side within
// rounding, which moves a step by more than that.
TEST(Winograd, EveryScheduleEqualsOneRank) {
  const Graph graph = winograd_network();
  const SmallSource source(graph, 96, 10);
  const auto variants = all_winograd(graph);
  const RunSettings s = with_variants(variants);
  const TrainingRun one = on_ranks(1, graph, make_plan(graph, {1, 1, 4, "gpipe"}), source, s);
  const TrainingRun direct = on_ranks(1, graph, make_plan(graph, {1, 1, 4, "gpipe"}), source, with_variants(nullptr));
  if (world_rank() == 0) {
    const auto used = variants->used();
    EXPECT_TRUE(
        std::any_of(used.begin(), used.end(), [](const auto& work) { return work.second.variant == "winograd"; }));
    EXPECT_LT(row_difference(one, direct), 1e-3);
    EXPECT_LT(value_difference(one, direct), 1e-3);
  }
  for (const auto& entry : schedules::registry()) {
    if ((entry.capabilities & schedules::kSynchronous) == 0) continue;
    for (const Recompute recompute : {Recompute::none, Recompute::chosen}) {
      const Grid grid{1, 2, 4, entry.name, recompute};
      SCOPED_TRACE(fmt::format("{}, recompute {}", entry.name, static_cast<int>(recompute)));
      expect_equal(on_ranks(2, graph, make_plan(graph, grid), source, s), one, 1e-3);
    }
  }
  for (const Grid& grid : {Grid{2, 2, 2, "1f1b"}, Grid{4, 1, 1, "gpipe"}, Grid{1, 4, 4, "zb-h2"}}) {
    SCOPED_TRACE(fmt::format("{} pipelines x {} stages", grid.pipelines, grid.stages));
    expect_equal(on_ranks(grid.ranks(), graph, make_plan(graph, grid), source, s), one, 1e-3);
  }
}

TEST(Winograd, AnyGridUsesNoVariant) {
  const Graph graph = convolutions();
  const SmallSource source(graph, 96, 10);
  const auto variants = all_winograd(graph);
  RunSettings s = with_variants(variants);
  s.train.any_grid = true;
  const TrainingRun with = on_ranks(2, graph, make_plan(graph, {1, 2, 3, "1f1b"}), source, s);
  EXPECT_TRUE(variants->used().empty());
  s.train.variants = nullptr;
  const TrainingRun without = on_one_rank(graph, source, s);
  if (world_rank() == 0) {
    EXPECT_EQ(with.values, without.values);
  }
  s.train.variants = variants;
  s.train.any_grid = false;
  on_ranks(2, graph, make_plan(graph, {1, 2, 3, "1f1b"}), source, s);
  if (world_rank() < 2) {
    EXPECT_FALSE(variants->used().empty());
  }
}

}  // namespace
}  // namespace millrace::testing
