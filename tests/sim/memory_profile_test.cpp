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

}  // namespace
}  // namespace millrace::sim
