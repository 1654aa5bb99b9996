// Updates made before the norm is known end where updates that wait for it end, whether it clips or not (METHODS 2).
#include <algorithm>

#include <gtest/gtest.h>

#include "comm/shared_error.h"
#include "tests/mpi/networks.h"
#include "tests/mpi/on_ranks.h"

namespace millrace::testing {
namespace {

RunSettings settings(double clip_norm, bool post_validation) {
  RunSettings s = twelve_iterations();
  s.train.clip_norm = clip_norm;
  s.train.optimizer.momentum = 0.9;
  s.lowering.hiding = Hiding::backward;
  s.lowering.post_validation = post_validation;
  return s;
}

// Iterations that a limit clips.
std::int64_t clipped(const TrainingRun& run, double limit) {
  return std::count_if(run.rows.begin(), run.rows.end(),
                       [&](const IterationRow& row) { return row.gradient_norm > limit; });
}

TEST(PostValidation, GivesTheBitsOfUpdatesThatWait) {
  for (const std::string& network : small_networks()) {
    SCOPED_TRACE(network);
    const Graph graph = small_network(network);
    const SmallSource source(graph, 90, 10);
    for (const Grid& grid : {Grid{1, 4, 5, "zb-h2"}, Grid{2, 2, 4, "zb-h2"}, Grid{2, 2, 3, "1f1b"}}) {
      SCOPED_TRACE(grid.schedule);
      const Plan plan = make_plan(graph, grid);
      // A limit in the middle of what the norms are: some iterations are clipped, others are not.
      const TrainingRun open = on_ranks(4, graph, plan, source, settings(1e9, false));
      double limit = 0;
      if (world_rank() < 4) {
        std::vector<double> norms;
        for (const IterationRow& row : open.rows) norms.push_back(row.gradient_norm);
        std::nth_element(norms.begin(), norms.begin() + 6, norms.end());
        limit = norms[6];
      }
      const TrainingRun waits = on_ranks(4, graph, plan, source, settings(limit, false));
      const TrainingRun validated = on_ranks(4, graph, plan, source, settings(limit, true));
      const TrainingRun never = on_ranks(4, graph, plan, source, settings(1e9, true));
      if (world_rank() != 0) continue;
      EXPECT_GT(clipped(waits, limit), 0);
      EXPECT_LT(clipped(waits, limit), 12);
      EXPECT_EQ(row_difference(validated, waits), 0);
      EXPECT_EQ(validated.values, waits.values);
      EXPECT_EQ(never.values, open.values);
    }
  }
}

TEST(PostValidation, DrainsBeforeAnEvaluation) {
  const Graph graph = small_network("resnet");
  const SmallSource source(graph, 90, 37);
  const Plan plan = make_plan(graph, {1, 4, 5, "zb-h2"});
  RunSettings waits = settings(0.5, false), validates = settings(0.5, true);
  for (RunSettings* s : {&waits, &validates}) {
    s->evaluate = true;
    s->train.evaluate_every = 3;
  }
  const TrainingRun expected = on_ranks(4, graph, plan, source, waits);
  const TrainingRun run = on_ranks(4, graph, plan, source, validates);
  if (world_rank() != 0) return;
  ASSERT_EQ(run.evaluations.size(), expected.evaluations.size());
  for (std::size_t i = 0; i < run.evaluations.size(); ++i) {
    EXPECT_EQ(run.evaluations[i].loss, expected.evaluations[i].loss);
  }
  EXPECT_EQ(run.values, expected.values);
}

TEST(PostValidation, AnInfiniteGradientIsTakenBackByAllAndThenEndsTheRun) {
  const Graph graph = small_network("mlp");
  const SmallSource source(graph, 90, 10);
  RunSettings s = settings(1e9, true);
  s.train.optimizer.learning_rate = 1e30;
  s.train.maximum_skips = 3;
  bool failed = false;
  try {
    on_ranks(4, graph, make_plan(graph, {2, 2, 4, "zb-h2"}), source, s);
  } catch (const comm::SharedError& error) {
    failed = true;
    EXPECT_NE(std::string(error.what()).find("3 iterations in a row"), std::string::npos) << error.what();
  }
  EXPECT_EQ(failed, world_rank() < 4);
  if (failed) patient_barrier();
}

}  // namespace
}  // namespace millrace::testing
