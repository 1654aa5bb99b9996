// Memory over time follows the live micro-batches of METHODS 2.
#include "sim/memory_profile.h"

#include <gmock/gmock.h>

#include "sim/simulate.h"
#include "tests/program/networks.h"

namespace millrace::sim {
namespace {

using testing::ElementsAre;

TEST(MemoryProfile, PeaksOfOneFOneB) {
  const Graph graph = test::chain(3);
  const test::PipelineShape shape{.replicas = {1, 1, 1, 1}, .micro_batches = 8};
  const Program program = test::make_program(graph, test::make_plan(graph, {shape}), 8);
  SimCosts costs = zero_costs();
  costs.compute = [](const Piece& piece) { return piece.kind == InstructionKind::forward ? 1_s : 2_s; };
  const Simulation run = simulate(graph, program, costs);
  const auto profile = memory_profile(program, run.timeline, [](std::int32_t stage, int) {
    return plan::StageFootprint{.weights = Bytes(100 + stage),
                                .gradients = 7_B,
                                .optimizer = 5_B,
                                .per_slot = 10_B,
                                .workspace = 3_B,
                                .messages = 1_B};
  });
  std::vector<std::int64_t> totals;
  for (const MemorySample& peak : peaks(profile)) totals.push_back(peak.memory.total().value());
  EXPECT_THAT(totals, ElementsAre(100 + 13 + 40 + 3, 101 + 13 + 30 + 3, 102 + 13 + 20 + 3, 103 + 13 + 10 + 3));
  for (const auto& samples : profile) {
    EXPECT_EQ(samples.front().memory.activations, 0_B);
    EXPECT_EQ(samples.back().memory.activations, 0_B);
    for (std::size_t i = 1; i < samples.size(); ++i) EXPECT_LE(samples[i - 1].time, samples[i].time);
  }
}

TEST(MemoryProfile, VersionsOfTheWeightsAreThoseOfMethods2) {  // REPORTS M01
  const Graph graph = test::chain(7);
  const test::PipelineShape shape{.replicas = {1, 1, 1, 1}, .micro_batches = 8};
  const auto weights = [&](const std::string& schedule) {
    const Program program = test::make_program(graph, test::make_plan(graph, {shape}, schedule), 8);
    Options options;
    options.iterations = 2 + program.overlap;
    SimCosts costs = zero_costs();
    costs.compute = [](const Piece& piece) { return piece.kind == InstructionKind::forward ? 1_s : 2_s; };
    const auto profile = memory_profile(program, simulate(graph, program, costs, options).timeline,
                                        [](std::int32_t, int) { return plan::StageFootprint{.weights = 10_B}; });
    std::vector<std::int64_t> most;
    for (const MemorySample& peak : peaks(profile)) most.push_back(peak.memory.weights.value());
    for (const auto& samples : profile) EXPECT_EQ(samples.back().memory.weights, 10_B) << schedule;
    return most;
  };
  EXPECT_THAT(weights("1f1b"), ElementsAre(10, 10, 10, 10));
  EXPECT_THAT(weights("pipedream"), ElementsAre(40, 30, 20, 10));
  EXPECT_THAT(weights("pipedream-2bw"), ElementsAre(20, 20, 20, 20));
}

}  // namespace
}  // namespace millrace::sim
