// Makespans and spans of data/pipeline_makespans.csv, to the microsecond.
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

#include "schedules/registry.h"
#include "tests/program/networks.h"
#include "tests/schedules/reference_run.h"

namespace millrace::test {
namespace {

struct Row {
  int p = 0;
  int m = 0;
  UnitTimes times;
  std::int64_t one_f_one_b = 0, interleaved = 0, h1 = 0, h2 = 0, zb1p = 0, zb2p = 0;
};

std::vector<Row> rows() {
  std::ifstream file(MILLRACE_SOURCE_DIR "/data/pipeline_makespans.csv");
  std::string line;
  std::getline(file, line);
  std::vector<Row> all;
  while (std::getline(file, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream words(line);
    Row& row = all.emplace_back();
    words >> row.p >> row.m >> row.times.forward >> row.times.backward_input >> row.times.backward_weight >>
        row.times.hop >> row.one_f_one_b >> row.interleaved >> row.h1 >> row.h2 >> row.zb1p >> row.zb2p;
  }
  return all;
}

// Activations of a layer, in bytes a token (zero-bubble paper): 34h + 5as after its forward, 32h of them until the
// weight gradient; hidden size and heads of the models of the table by number of stages and forward time, 1,024 tokens.
struct Sizes {
  std::int64_t activations = 0;
  std::int64_t kept = 0;
};

Sizes sizes_of(const Row& row) {
  std::int64_t hidden = 2304, heads = 24;
  if (row.times.forward > 29000) hidden = 4096, heads = 32;
  if (row.p == 16) hidden = 5120, heads = 40;
  if (row.p == 32) hidden = 6144, heads = 48;
  return {34 * hidden + 5 * heads * 1024, 32 * hidden};
}

// `limit` in micro-batches on each device; 0: none.
ReferenceRun run(const Row& row, const std::string& schedule, int chunks = 1, int limit = 0,
                 const std::map<std::string, std::string>& options = {}) {
  const int stages = row.p * chunks;
  const Graph graph = chain(stages - 1);
  const PipelineShape shape{.replicas = std::vector<int>(static_cast<std::size_t>(stages), 1), .micro_batches = row.m};
  Plan plan = placed(make_plan(graph, {shape}, schedule), row.p, schedules::by_name(schedule).placement);
  plan.schedule_options = options;
  UnitTimes times = row.times;
  // Times of one chunk; whole units: all times are multiplied by the number of chunks, and the result divided again.
  if (chunks > 1) times.hop *= chunks;
  const StageDag dag = make_stage_dag(graph, plan);
  const auto count = static_cast<std::size_t>(stages);
  StageCosts costs;
  costs.forward.assign(count, Seconds(static_cast<double>(times.forward)));
  costs.backward.assign(count, Seconds(static_cast<double>(times.backward_input + times.backward_weight)));
  costs.backward_weight.assign(count, Seconds(static_cast<double>(times.backward_weight)));
  costs.hop.assign(count, Seconds(static_cast<double>(times.hop)));
  const Sizes sizes = sizes_of(row);
  costs.activations.assign(count, Bytes(sizes.activations));
  costs.kept_for_weights.assign(count, Bytes(sizes.kept));
  if (limit > 0) costs.limit.assign(static_cast<std::size_t>(row.p), Bytes(limit * sizes.activations));
  const ComputeOrder order = schedules::compute_order(plan, dag, costs);
  for (const auto& rank : order.ranks()) {
    std::int64_t bytes = 0, peak = 0;
    for (const ComputeAction& action : rank) {
      if (action.kind == ComputeKind::forward) peak = std::max(peak, bytes += sizes.activations);
      if (action.kind == ComputeKind::backward_input) bytes -= sizes.activations - sizes.kept;
      if (action.kind == ComputeKind::backward_weight) bytes -= sizes.kept;
    }
    if (limit > 0) {
      EXPECT_LE(peak, limit * sizes.activations);
    }
  }
  ReferenceRun result = reference_run(plan, dag, order, times);
  EXPECT_TRUE(result.ends);
  return result;
}

TEST(Published, OneFOneBAndH1AreHitExactly) {
  ASSERT_EQ(rows().size(), 7U);
  for (const Row& row : rows()) {
    EXPECT_EQ(run(row, "1f1b").makespan, row.one_f_one_b) << row.p << " " << row.m;
    EXPECT_EQ(run(row, "zb-h1").makespan, row.h1) << row.p << " " << row.m;
  }
}

TEST(Published, InterleavedIsHitButForOneHopAStage) {
  // The published figure is lower by p hops on every row.
  const std::vector<int> chunks{3, 3, 4, 3, 3, 2, 2};
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const Row row = rows()[i];
    const double makespan = static_cast<double>(run(row, "interleaved", chunks[i]).makespan) / chunks[i];
    EXPECT_NEAR(makespan, static_cast<double>(row.interleaved + row.p * row.times.hop), 1) << row.p << " " << row.m;
  }
}

TEST(Published, H2IsHitAsSpan) {
  // The published closed form is the span of the busiest device; on the first two rows it is the makespan too.
  for (const Row& row : rows()) EXPECT_EQ(run(row, "zb-h2").longest_span(), row.h2) << row.p << " " << row.m;
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(run(rows()[i], "zb-h2").makespan, rows()[i].h2);
}

TEST(Published, GreedyIsNotWorseAtTheSameMemory) {
  for (const Row& row : rows()) {
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
