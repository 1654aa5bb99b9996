// Makespans and spans of data/pipeline_makespans.csv by the simulator, to the microsecond.
#include <gmock/gmock.h>

#include "program/lowering.h"
#include "program/stage_dag.h"
#include "schedules/registry.h"
#include "sim/simulate.h"
#include "tests/program/networks.h"
#include "tests/program/published_rows.h"
#include "tests/sim/spans.h"

namespace millrace::sim {
namespace {

using test::PublishedRow;
using NamedOptions = std::map<std::string, std::string>;

// One linear a stage, one row a micro-batch. `limit` in micro-batches on each device; 0: none.
Simulation run(const PublishedRow& row, const std::string& schedule, int chunks = 1, int limit = 0,
               const NamedOptions& options = {}) {
  const int stages = row.p * chunks;
  const Graph graph = test::chain(stages - 1);
  Plan plan = test::make_plan(
      graph, {{.replicas = std::vector<int>(static_cast<std::size_t>(stages), 1), .micro_batches = row.m}}, schedule);
  plan = test::placed(plan, row.p, schedules::by_name(schedule).placement);
  plan.schedule_options = options;
  const StageDag dag = make_stage_dag(graph, plan);
  const ComputeOrder order = schedules::compute_order(plan, dag, test::published_costs(row, stages, limit));
  const Program program = lower(graph, plan, order, row.m);
  SimCosts costs = zero_costs();
  costs.compute = [&](const Piece& piece) {
    const auto both = row.backward_input + row.backward_weight;
    const auto time = piece.kind == InstructionKind::forward           ? row.forward
                      : piece.kind == InstructionKind::backward_input  ? row.backward_input
                      : piece.kind == InstructionKind::backward_weight ? row.backward_weight
                                                                       : both;
    return Seconds(static_cast<double>(time) / chunks);
  };
  costs.transfer = [&](Bytes, int, int) { return Seconds(static_cast<double>(row.hop)); };
  return simulate(graph, program, costs);
}

double longest_span(const Simulation& run) {
  const std::vector<double> all = spans(run);
  return *std::max_element(all.begin(), all.end());
}

std::string words(const PublishedRow& row) { return "p=" + std::to_string(row.p) + " m=" + std::to_string(row.m); }

TEST(Published, OneFOneBAndH1AreHitExactly) {
  ASSERT_EQ(test::published_rows().size(), 7U);
  for (const PublishedRow& row : test::published_rows()) {
    EXPECT_NEAR(run(row, "1f1b").makespan.value(), static_cast<double>(row.one_f_one_b), 0.5) << words(row);
    EXPECT_NEAR(run(row, "zb-h1").makespan.value(), static_cast<double>(row.h1), 0.5) << words(row);
  }
}

TEST(Published, InterleavedIsHitButForOneHopAStage) {
  // The published figure is lower by p hops on every row.
  for (const PublishedRow& row : test::published_rows()) {
    EXPECT_NEAR(run(row, "interleaved", row.chunks).makespan.value(),
                static_cast<double>(row.interleaved + row.p * row.hop), 1)
        << words(row);
  }
}

TEST(Published, H2IsHitAsSpan) {
  // The published closed form is the span of the busiest device; on the first two rows it is the makespan too.
  const std::vector<PublishedRow> rows = test::published_rows();
  for (const PublishedRow& row : rows) {
    EXPECT_NEAR(longest_span(run(row, "zb-h2")), static_cast<double>(row.h2), 0.5) << words(row);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(run(rows[i], "zb-h2").makespan.value(), static_cast<double>(rows[i].h2), 0.5) << words(rows[i]);
  }
}

TEST(Published, GreedyIsNotWorseAtTheSameMemory) {
  for (const PublishedRow& row : test::published_rows()) {
    // Only the first row needs moves beyond the rules.
    const NamedOptions moves{{"moves", row.m == 24 ? "40000" : "0"}};
    EXPECT_LE(longest_span(run(row, "zb-greedy", 1, row.p, {{"moves", "0"}})), static_cast<double>(row.zb1p))
        << words(row);
    const double twice = longest_span(run(row, "zb-greedy", 1, 2 * row.p, moves));
    EXPECT_LE(twice, static_cast<double>(row.zb2p)) << words(row);
    EXPECT_LE(twice, static_cast<double>(row.h2)) << words(row);
  }
}

}  // namespace
}  // namespace millrace::sim
