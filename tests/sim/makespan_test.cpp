// Makespans that METHODS 2 and the published evaluator of the zero-bubble schedules give.
#include <gmock/gmock.h>

#include "sim/simulate.h"
#include "tests/program/networks.h"

namespace millrace::sim {
namespace {

using testing::ElementsAre;

struct Pipe {
  int stages = 1;
  int micro_batches = 1;
  double forward = 1;
  double backward = 2;
  double hop = 0;
  std::string schedule = "1f1b";
  std::vector<int> warmup{};
};

// Equal stages of one linear each, one row a micro-batch.
Simulation run(const Pipe& pipe) {
  const Graph graph = test::chain(pipe.stages - 1);
  const test::PipelineShape shape{.replicas = std::vector<int>(static_cast<std::size_t>(pipe.stages), 1),
                                  .micro_batches = pipe.micro_batches,
                                  .warmup = pipe.warmup};
  const Program program = test::make_program(graph, test::make_plan(graph, {shape}, pipe.schedule), pipe.micro_batches);
  SimCosts costs = zero_costs();
  costs.compute = [&](const Piece& piece) {
    return Seconds(piece.kind == InstructionKind::forward ? pipe.forward : pipe.backward);
  };
  costs.transfer = [&](Bytes, int, int) { return Seconds(pipe.hop); };
  return simulate(graph, program, costs);
}

TEST(Makespan, OfMethodsSection2) {
  // (m + p − 1)(tF + tB) for both schedules.
  for (const std::string schedule : {"gpipe", "1f1b"}) {
    // REPORTS P19
    EXPECT_EQ(run({.stages = 4, .micro_batches = 8, .schedule = schedule}).iteration_time, 33_s) << schedule;
    EXPECT_EQ(run({.stages = 8, .micro_batches = 16, .schedule = schedule}).iteration_time, 69_s) << schedule;
    EXPECT_EQ(run({.stages = 8, .micro_batches = 32, .schedule = schedule}).iteration_time, 117_s) << schedule;
  }
  EXPECT_NEAR(run({.stages = 8, .micro_batches = 32}).bubble_fraction, 0.1795, 0.00005);
  EXPECT_DOUBLE_EQ(run({.stages = 4, .micro_batches = 8}).bubble_fraction, 3.0 / 11.0);
}

TEST(Makespan, PeaksOfLiveMicroBatches) {
  EXPECT_THAT(run({.stages = 4, .micro_batches = 8}).peak_live_micro_batches, ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(run({.stages = 4, .micro_batches = 8, .schedule = "gpipe"}).peak_live_micro_batches,
              ElementsAre(8, 8, 8, 8));
}

TEST(Makespan, FewMicroBatchesAndOneStage) {
  for (const std::string schedule : {"gpipe", "1f1b"}) {
    EXPECT_EQ(run({.stages = 4, .micro_batches = 1, .schedule = schedule}).iteration_time, 12_s);
    EXPECT_EQ(run({.stages = 4, .micro_batches = 3, .schedule = schedule}).iteration_time, 18_s);
    EXPECT_EQ(run({.stages = 1, .micro_batches = 5, .schedule = schedule}).iteration_time, 15_s);
  }
}

TEST(Makespan, HopLatencyIsHiddenByDeeperWarmup) {
  // METHODS 2, measured fact 2.
  EXPECT_EQ(run({.stages = 4, .micro_batches = 16}).iteration_time, 57_s);
  EXPECT_EQ(run({.stages = 4, .micro_batches = 16, .hop = 0.5}).iteration_time, 71_s);
  EXPECT_EQ(run({.stages = 4, .micro_batches = 16, .hop = 0.5, .warmup = {6, 4, 2, 0}}).iteration_time, 60_s);
}

TEST(Makespan, OfThePublishedEvaluator) {
  // Column 1f1b_us of the makespans computed by the authors of "Zero Bubble Pipeline Parallelism" (ICLR 2024) from
  // their profiled F, B, W and communication times: p, m, F, B + W, comm in µs.
  const auto microseconds = [](int p, int m, double f, double b, double comm) {
    return run({.stages = p, .micro_batches = m, .forward = f, .backward = b, .hop = comm}).iteration_time.value();
  };
  EXPECT_NEAR(microseconds(8, 24, 18522, 18086 + 9337, 601), 1456749, 1);
  EXPECT_NEAR(microseconds(16, 48, 11347, 11248 + 8132, 377), 1980287, 1);
  EXPECT_NEAR(microseconds(32, 256, 10402, 10248 + 7698, 460), 8391636, 1);
}

// `chunks` stages a device, device by device from the first stage on.
Seconds interleaved(int devices, int chunks, int micro_batches) {
  const int stages = devices * chunks;
  const Graph graph = test::chain(stages - 1);
  Plan plan = test::make_plan(graph, {{.replicas = std::vector<int>(static_cast<std::size_t>(stages), 1),
                                       .micro_batches = micro_batches}},
                              "interleaved");
  for (int s = 0; s < stages; ++s) plan.pipelines[0].stages[static_cast<std::size_t>(s)].devices = {s % devices};
  const Program program = test::make_program(graph, plan, micro_batches);
  SimCosts costs = zero_costs();
  costs.compute = [&](const Piece& piece) {
    return Seconds((piece.kind == InstructionKind::forward ? 4.0 : 8.0) / chunks);
  };
  return simulate(graph, program, costs).iteration_time / 4;
}

TEST(Makespan, OfInterleavedSchedules) {
  EXPECT_EQ(interleaved(4, 2, 8), Seconds(28.5));
  EXPECT_EQ(interleaved(4, 4, 8), Seconds(26.25));
  EXPECT_EQ(interleaved(8, 2, 16), Seconds(58.5));
  EXPECT_EQ(interleaved(8, 4, 16), Seconds(53.25));
}

TEST(Makespan, OfZeroBubbleSchedules) {
  // METHODS 2: tF = tB = tW = 1, p = 4, m = 8: 27 in all, the devices' spans 27, 26, 25, 24; with zb-h2 24 each.
  const Graph graph = test::chain(3);
  for (const std::string schedule : {"zb-h1", "zb-h2"}) {
    const test::PipelineShape shape{.replicas = {1, 1, 1, 1}, .micro_batches = 8};
    const Program program = test::make_program(graph, test::make_plan(graph, {shape}, schedule), 8);
    SimCosts costs = zero_costs();
    costs.compute = [](const Piece& piece) { return piece.kind == InstructionKind::backward ? 2_s : 1_s; };
    const Simulation run = simulate(graph, program, costs);
    std::vector<double> first(4, 1e9), last(4, 0);
    for (const TimelineRow& row : run.timeline.rows) {
      if (row.end <= row.start || row.instruction.micro_batch < 0 || row.instruction.transfer >= 0) continue;
      const auto rank = static_cast<std::size_t>(row.rank);
      first[rank] = std::min(first[rank], row.start.value());
      last[rank] = std::max(last[rank], row.end.value());
    }
    std::vector<double> spans;
    for (std::size_t r = 0; r < 4; ++r) spans.push_back(last[r] - first[r]);
    if (schedule == "zb-h1") {
      EXPECT_EQ(run.iteration_time, 27_s);
      EXPECT_THAT(spans, ElementsAre(27, 26, 25, 24));
    } else {
      EXPECT_THAT(spans, ElementsAre(24, 24, 24, 24));
    }
  }
}

}  // namespace
}  // namespace millrace::sim
