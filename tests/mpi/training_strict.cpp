// Training on an MPI that buffers nothing, ends tags early, limits counts and is late at random gives the same bits.
#include <tuple>

#include <gtest/gtest.h>

#include "tests/mpi/networks.h"
#include "tests/mpi/on_ranks.h"
#include "tests/support/mpi_strict.h"

namespace millrace::testing {
namespace {

// The rules hold from here to the end of the scope, on every rank.
class Rules {
 public:
  explicit Rules(const mpi_strict& rules) {
    patient_barrier();
    mpi_strict_rules = rules;
  }
  Rules(const Rules&) = delete;
  Rules& operator=(const Rules&) = delete;
  ~Rules() {
    patient_barrier();
    mpi_strict_rules = {};
  }
};

TrainingRun train_on(const Graph& graph, const Plan& plan, const mpi_strict& rules, const RunSettings& settings) {
  const SmallSource source(graph, 50, 10);
  const Rules hold(rules);
  const long before = mpi_strict_calls();
  TrainingRun run = on_ranks(4, graph, plan, source, settings);
  EXPECT_GT(mpi_strict_calls(), before) << "the calls do not pass the rules";
  return run;
}

RunSettings settings() {
  RunSettings s = twelve_iterations();
  s.train.iterations = 5;
  s.batch = 22;  // 22, 22 and 6 in turn
  s.tail = dataset::Tail::uneven;
  s.evaluate = true;
  s.train.evaluate_every = 2;
  s.transport.shares_memory = false;  // or MPI would carry nothing
  return s;
}

void expect_same_bits(const TrainingRun& a, const TrainingRun& b) {
  if (world_rank() != 0) return;
  EXPECT_EQ(row_difference(a, b), 0);
  EXPECT_EQ(a.values, b.values);
}

// Two pipelines; and stages whose replica counts differ, so that one tensor comes in several messages.
std::vector<Plan> plans(const Graph& graph) {
  Plan replicas = make_plan(graph, {1, 2, 4, "gpipe"});
  replicas.pipelines[0].stages[0].devices = {0};
  replicas.pipelines[0].stages[1].devices = {1, 2, 3};
  replicas.pipelines[0].stages[1].shares = {0.5, 0.25, 0.25};
  return {make_plan(graph, {2, 2, 3, "1f1b"}), make_plan(graph, {1, 4, 5, "1f1b"}), replicas};
}

// REPORTS R04: the order of operations is the programs' own, whenever they happen.
TEST(TrainingStrict, DelaysAndSynchronousSendsChangeNoBit) {
  const Graph graph = small_network("gpt");
  for (const Plan& plan : plans(graph)) {
    const TrainingRun calm = train_on(graph, plan, {}, settings());
    for (const unsigned seed : {1U, 2U, 3U}) {
      SCOPED_TRACE(seed);
      const mpi_strict rules{
          .synchronous = 1, .largest_tag = 32767, .largest_count = 0, .longest_delay_us = 1500, .seed = seed};
      expect_same_bits(train_on(graph, plan, rules, settings()), calm);
    }
  }
}

// As if every two ranks had a node of their own: what goes by memory and what goes by MPI are late apart. Sums have two
// members here (no parameter is tied across stages), so that either way has the same order of additions.
TEST(TrainingStrict, PartlyByMemoryTheBitsAreTheSame) {
  const Graph graph = small_network("mlp");
  for (const Grid& grid : {Grid{2, 2, 3, "1f1b"}, Grid{1, 4, 5, "gpipe"}, Grid{2, 2, 4, "hippie"}}) {
    SCOPED_TRACE(grid.schedule);
    const Plan plan = make_plan(graph, grid);
    const TrainingRun by_mpi = train_on(graph, plan, {}, settings());
    RunSettings both = settings();
    both.transport = {.shares_memory = true, .ranks_per_node = 2};
    for (const unsigned seed : {1U, 2U}) {
      const mpi_strict rules{
          .synchronous = 1, .largest_tag = 32767, .largest_count = 0, .longest_delay_us = 1500, .seed = seed};
      expect_same_bits(train_on(graph, plan, rules, both), by_mpi);
    }
    RunSettings by_memory = both;
    by_memory.transport.ranks_per_node = 0;
    const SmallSource source(graph, 50, 10);
    expect_same_bits(on_ranks(4, graph, plan, source, by_memory), by_mpi);
  }
}

// Stages that share ranks, iterations that overlap, and a round that begins again.
TEST(TrainingStrict, SeveralStagesARankAndOverlappingRoundsToo) {
  const Graph gpt = small_network("gpt"), mlp = small_network("mlp");
  RunSettings validates = settings();
  validates.train.clip_norm = 0.5;
  validates.lowering.post_validation = true;
  RunSettings hidden = settings();
  hidden.lowering.hiding = Hiding::update;
  for (const auto& [graph, grid, s] :
       {std::tuple(&gpt, Grid{2, 2, 4, "interleaved"}, hidden), std::tuple(&gpt, Grid{1, 4, 4, "chimera"}, hidden),
        std::tuple(&mlp, Grid{1, 4, 3, "pipedream"}, settings()),
        std::tuple(&mlp, Grid{1, 4, 6, "pipedream-2bw"}, settings()),
        std::tuple(&gpt, Grid{1, 4, 5, "zb-h2"}, validates)}) {
    SCOPED_TRACE(grid.schedule);
    const Plan plan = make_plan(*graph, grid);
    const TrainingRun calm = train_on(*graph, plan, {}, s);
    for (const unsigned seed : {1U, 2U}) {
      const mpi_strict rules{
          .synchronous = 1, .largest_tag = 32767, .largest_count = 0, .longest_delay_us = 1500, .seed = seed};
      expect_same_bits(train_on(*graph, plan, rules, s), calm);
    }
  }
}

// Tags of one edge come again for later micro-batches; MPI's order of messages with one tag tells them apart.
TEST(TrainingStrict, AFewTagsAreEnough) {
  const Graph graph = small_network("gpt");
  for (const Plan& plan : plans(graph)) {
    const TrainingRun calm = train_on(graph, plan, {}, settings());
    const mpi_strict rules{.synchronous = 1, .largest_tag = 7, .largest_count = 0, .longest_delay_us = 300, .seed = 4};
    expect_same_bits(train_on(graph, plan, rules, settings()), calm);
  }
}

// REPORTS C02: transfers and sums longer than one call may move go in pieces.
TEST(TrainingStrict, NoCallMovesMoreThanTheLimit) {
  const Graph graph = models::make("mlp", {{"inputs", "40"}, {"hidden", "[300, 300]"}, {"classes", "5"}});
  const Plan plan = make_plan(graph, {2, 2, 2, "1f1b"});
  RunSettings s = settings();
  s.train.iterations = 3;
  const TrainingRun whole = train_on(graph, plan, {}, s);
  s.transport.mpi.largest_message_bytes = 1000;
  const mpi_strict rules{
      .synchronous = 1, .largest_tag = 32767, .largest_count = 1000, .longest_delay_us = 0, .seed = 1};
  expect_equal(train_on(graph, plan, rules, s), whole, 1e-6);
}

// REPORTS C14: what is summed together is a matter of speed alone.
TEST(TrainingStrict, BucketSizeChangesNoResult) {
  const Graph graph = small_network("gpt");
  Plan plan = make_plan(graph, {2, 2, 2, "1f1b"});
  const TrainingRun usual = train_on(graph, plan, {}, settings());
  for (const Bytes size : {1_B, 1_KiB, 64_KiB, 1_GiB}) {
    SCOPED_TRACE(size.value());
    plan.bucket_size = size;
    const mpi_strict rules{
        .synchronous = 1, .largest_tag = 32767, .largest_count = 0, .longest_delay_us = 100, .seed = 5};
    expect_equal(train_on(graph, plan, rules, settings()), usual, 1e-6);
  }
}

}  // namespace
}  // namespace millrace::testing
