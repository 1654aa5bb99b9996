// What a rank will hold is known before the first step, by kind, however late a peer is.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/mpi/networks.h"
#include "tests/mpi/on_ranks.h"

namespace millrace::testing {
namespace {

class Forecast : public ::testing::TestWithParam<bool> {};

TEST_P(Forecast, IsWhatARankHeld) {
  RunSettings s = twelve_iterations();
  s.train.any_grid = GetParam();
  s.train.iterations = 4;
  s.train.optimizer.momentum = 0.9;
  s.batch = 22;
  s.tail = dataset::Tail::uneven;
  s.evaluate = true;
  s.forecast = true;
  for (const std::string& name : small_networks()) {
    if (s.train.any_grid && name == "resnet") continue;  // has batch norm
    const Graph graph = small_network(name);
    const SmallSource source(graph, 50, 10);
    for (const Grid& grid :
         {Grid{1, 1, 2, "gpipe"}, Grid{2, 2, 3, "1f1b"}, Grid{1, 4, 5, "1f1b"}, Grid{4, 1, 2, "hippie"}}) {
      SCOPED_TRACE(fmt::format("{}, {} pipelines, {} stages", name, grid.pipelines, grid.stages));
      const TrainingRun run = on_ranks(grid.ranks(), graph, make_plan(graph, grid), source, s);
      if (world_rank() >= grid.ranks()) continue;
      const RankReport& held = run.outcome.rank;
      EXPECT_EQ(run.forecast.weights_bytes, held.weights_bytes);
      EXPECT_EQ(run.forecast.gradients_bytes, held.gradients_bytes);
      EXPECT_EQ(run.forecast.optimizer_bytes, held.optimizer_bytes);
      EXPECT_EQ(run.forecast.activations_bytes, held.activations_bytes);
      EXPECT_EQ(run.forecast.workspace_bytes, held.workspace_bytes);
      EXPECT_EQ(run.forecast.buffers_bytes, held.buffers_bytes);
    }
  }
}

Graph untied_gpt() {
  return models::make(
      "gpt",
      {{"layers", "2"}, {"width", "16"}, {"heads", "2"}, {"sequence", "6"}, {"vocabulary", "11"}, {"tied", "false"}});
}

// Stages that share a rank, halves of the backward, versions of the weights, and messages that run ahead.
TEST(ForecastOfSchedules, IsWhatARankHeld) {
  RunSettings s = twelve_iterations();
  s.train.iterations = 4;
  s.batch = 24;
  s.evaluate = true;
  s.forecast = true;
  for (const std::string& name : small_networks()) {
    for (const std::string schedule : {"gpipe", "1f1b", "hippie", "zb-h1", "interleaved", "pipedream-2bw"}) {
      const bool untied = name == "gpt" && schedule == "pipedream-2bw";  // takes no tied parameters across stages
      const Graph graph = untied ? untied_gpt() : small_network(name);
      const SmallSource source(graph, 48, 10);
      for (const Grid& grid : {Grid{1, 2, 6, schedule}, Grid{2, 2, 4, schedule}}) {
        SCOPED_TRACE(fmt::format("{}, {}, {} pipelines", name, schedule, grid.pipelines));
        const TrainingRun run = on_ranks(grid.ranks(), graph, make_plan(graph, grid), source, s);
        if (world_rank() >= grid.ranks()) continue;
        EXPECT_EQ(run.forecast.activations_bytes, run.outcome.rank.activations_bytes);
        EXPECT_EQ(run.forecast.buffers_bytes, run.outcome.rank.buffers_bytes);
        EXPECT_EQ(run.forecast.peak_bytes(), run.outcome.rank.peak_bytes());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Reproducible, Forecast, ::testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "any" : "grid"); });

}  // namespace
}  // namespace millrace::testing
