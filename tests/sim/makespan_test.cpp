// The exact makespans, spans and bubbles of METHODS 2, by the simulator.
#include <gmock/gmock.h>

#include "program/lowering.h"
#include "program/stage_dag.h"
#include "schedules/registry.h"
#include "sim/simulate.h"
#include "tests/program/networks.h"
#include "tests/sim/spans.h"

namespace millrace::sim {
namespace {

using testing::Each;
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

// `chunks` stages a device, device by device from the first stage on.
Seconds interleaved(int devices, int chunks, int micro_batches) {
  const int stages = devices * chunks;
  const Graph graph = test::chain(stages - 1);
  Plan plan = test::make_plan(
      graph, {{.replicas = std::vector<int>(static_cast<std::size_t>(stages), 1), .micro_batches = micro_batches}},
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

// Of one chunk.
struct Times {
  double forward = 4, backward_input = 4, backward_weight = 4;
};

// A schedule that places its stages itself, two a device where it holds several.
Simulation run_placed(const std::string& schedule, int devices, int micro_batches, const Times& times,
                      int iterations = 1) {
  const schedules::Placement placement = schedules::by_name(schedule).placement;
  const int stages = devices * (placement == schedules::Placement::vee ? 2 : 1);
  const Graph graph = test::chain(stages - 1);
  const test::PipelineShape shape{.replicas = std::vector<int>(static_cast<std::size_t>(stages), 1),
                                  .micro_batches = micro_batches};
  const Plan plan = test::placed(test::make_plan(graph, {shape}, schedule), devices, placement);
  StageCosts known;
  const auto count = make_stage_dag(graph, plan).successors.size();
  known.forward.assign(count, Seconds(times.forward));
  known.backward.assign(count, Seconds(times.backward_input + times.backward_weight));
  known.backward_weight.assign(count, Seconds(times.backward_weight));
  known.hop.assign(count, Seconds(0));
  const Program program =
      lower(graph, plan, schedules::compute_order(plan, make_stage_dag(graph, plan), known), micro_batches);
  SimCosts costs = zero_costs();
  costs.compute = [&](const Piece& piece) {
    switch (piece.kind) {
      case InstructionKind::forward:
        return Seconds(times.forward);
      case InstructionKind::backward_input:
        return Seconds(times.backward_input);
      case InstructionKind::backward_weight:
        return Seconds(times.backward_weight);
      default:
        return Seconds(times.backward_input + times.backward_weight);
    }
  };
  Options options;
  options.iterations = iterations + program.overlap;
  return simulate(graph, program, costs, options);
}

TEST(Makespan, OfZeroBubbleSchedules) {
  // METHODS 2: tF = tB = tW = 1, p = 4, m = 8: 27 in all, the devices' spans 27, 26, 25, 24; with zb-h2 24 each.
  const Times one{1, 1, 1};
  EXPECT_EQ(run_placed("zb-h1", 4, 8, one).iteration_time, 27_s);
  EXPECT_THAT(spans(run_placed("zb-h1", 4, 8, one)), ElementsAre(27, 26, 25, 24));
  for (const int p : {1, 2, 3, 4, 5, 8}) {
    EXPECT_THAT(spans(run_placed("zb-h2", p, 2 * p, one)), Each(3 * 2 * p)) << p;
  }
  // Idle (p − 1)(tF + tB − tW) for tW ≤ tB and m ≥ p.
  EXPECT_THAT(run_placed("zb-h1", 4, 8, {4, 5, 3}).idle, Each(Seconds(3 * (4 + 5 - 3))));
  EXPECT_THAT(run_placed("zb-h1", 6, 9, {4, 4, 4}).idle, Each(Seconds(5 * 4)));
}

TEST(Makespan, OfTheV) {
  // No bubble within a device's span where F = B = W and m ≥ 2p.
  for (const int p : {1, 2, 3, 4, 6}) {
    EXPECT_THAT(spans(run_placed("zb-v", p, 2 * p, {1, 1, 1})), Each(6 * 2 * p)) << p;
  }
}

TEST(Makespan, OfChimera) {
  const Times equal{4, 4, 0}, twice{4, 4, 4};  // tB = tF, tB = 2 tF
  EXPECT_EQ(run_placed("chimera", 4, 4, equal).makespan, 40_s);
  EXPECT_EQ(run_placed("chimera", 8, 8, equal).makespan, 88_s);
  EXPECT_EQ(run_placed("chimera", 4, 4, twice).makespan, 64_s);
  EXPECT_EQ(run_placed("chimera", 8, 8, twice).makespan, 144_s);
  EXPECT_EQ(run_placed("chimera", 4, 8, equal).makespan, 72_s);
  EXPECT_EQ(run_placed("chimera", 8, 16, equal).makespan, 152_s);
  for (const int p : {2, 4, 6, 8}) {
    EXPECT_DOUBLE_EQ(run_placed("chimera", p, p, equal).bubble_fraction, (p - 2.0) / (2 * p + p - 2)) << p;
    EXPECT_DOUBLE_EQ(run_placed("chimera", p, p, twice).bubble_fraction, (p - 2.0) / (1.5 * p + p - 2)) << p;
  }
}

TEST(Makespan, OfSchedulesThatNeverFlush) {
  // No bubble in steady state, and a version for every live micro-batch.
  for (const std::string schedule : {"pipedream", "pipedream-2bw"}) {
    for (const auto& [p, m] : {std::pair{1, 1}, {2, 2}, {3, 7}, {4, 4}, {4, 8}, {6, 9}}) {
      const Simulation run = run_placed(schedule, p, m, {}, 5);
      const std::vector<double> ends = ends_of_iterations(run);
      EXPECT_EQ(ends[4] - ends[3], m * 12) << schedule << " p=" << p << " m=" << m;
      std::vector<int> peaks;
      for (int s = 0; s < p; ++s) peaks.push_back(p - s);
      EXPECT_EQ(run.peak_live_micro_batches, peaks) << schedule << " p=" << p << " m=" << m;
    }
  }
}

}  // namespace
}  // namespace millrace::sim
