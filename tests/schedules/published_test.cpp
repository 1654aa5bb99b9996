// Makespans and spans of data/pipeline_makespans.csv, to the microsecond.
#include <gmock/gmock.h>

#include "schedules/registry.h"
#include "tests/program/networks.h"
#include "tests/program/published_rows.h"
#include "tests/schedules/reference_run.h"

namespace millrace::test {
namespace {

// `limit` in micro-batches on each device; 0: none.
ReferenceRun run(const PublishedRow& row, const std::string& schedule, int chunks = 1, int limit = 0,
                 const std::map<std::string, std::string>& options = {}) {
  const int stages = row.p * chunks;
  const Graph graph = chain(stages - 1);
  const PipelineShape shape{.replicas = std::vector<int>(static_cast<std::size_t>(stages), 1), .micro_batches = row.m};
  Plan plan = placed(make_plan(graph, {shape}, schedule), row.p, schedules::by_name(schedule).placement);
  plan.schedule_options = options;
  // Times of one chunk; whole units: all times are multiplied by the number of chunks, and the result divided again.
  const UnitTimes times{row.forward, row.backward_input, row.backward_weight, row.hop * chunks};
  const StageDag dag = make_stage_dag(graph, plan);
  const ComputeOrder order = schedules::compute_order(plan, dag, published_costs(row, stages, limit));
  for (const auto& rank : order.ranks()) {
    std::int64_t bytes = 0, peak = 0;
    for (const ComputeAction& action : rank) {
      if (action.kind == ComputeKind::forward) peak = std::max(peak, bytes += row.activations);
      if (action.kind == ComputeKind::backward_input) bytes -= row.activations - row.kept_for_weights;
      if (action.kind == ComputeKind::backward_weight) bytes -= row.kept_for_weights;
    }
    if (limit > 0) {
      EXPECT_LE(peak, limit * row.activations);
    }
  }
  ReferenceRun result = reference_run(plan, dag, order, times);
  EXPECT_TRUE(result.ends);
  return result;
}

TEST(Published, OneFOneBAndH1AreHitExactly) {
  ASSERT_EQ(published_rows().size(), 7U);
  for (const PublishedRow& row : published_rows()) {
    EXPECT_EQ(run(row, "1f1b").makespan, row.one_f_one_b) << row.p << " " << row.m;
    EXPECT_EQ(run(row, "zb-h1").makespan, row.h1) << row.p << " " << row.m;
  }
}

TEST(Published, InterleavedIsHitButForOneHopAStage) {
  // The published figure is lower by p hops on every row.
  for (const PublishedRow& row : published_rows()) {
    const double makespan = static_cast<double>(run(row, "interleaved", row.chunks).makespan) / row.chunks;
    EXPECT_NEAR(makespan, static_cast<double>(row.interleaved + row.p * row.hop), 1) << row.p << " " << row.m;
  }
}

TEST(Published, H2IsHitAsSpan) {
  // The published closed form is the span of the busiest device; on the first two rows it is the makespan too.
  for (const PublishedRow& row : published_rows())
    EXPECT_EQ(run(row, "zb-h2").longest_span(), row.h2) << row.p << " " << row.m;
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(run(published_rows()[i], "zb-h2").makespan, published_rows()[i].h2);
}

TEST(Published, GreedyIsNotWorseAtTheSameMemory) {
  for (const PublishedRow& row : published_rows()) {
    // Only the first row needs moves beyond the rules.
    const std::map<std::string, std::string> moves{{"moves", row.m == 24 ? "40000" : "0"}};
    EXPECT_LE(run(row, "zb-greedy", 1, row.p, {{"moves", "0"}}).longest_span(), row.zb1p) << row.p << " " << row.m;
    const std::int64_t twice = run(row, "zb-greedy", 1, 2 * row.p, moves).longest_span();
    EXPECT_LE(twice, row.zb2p) << row.p << " " << row.m;
    EXPECT_LE(twice, row.h2) << row.p << " " << row.m;
  }
}

}  // namespace
}  // namespace millrace::test
