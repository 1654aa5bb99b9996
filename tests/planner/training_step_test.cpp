// Steps of large models: what is simulated against what the arithmetic gives, and predictions of published runs.
#include "planner/step_prediction.h"

#include <gmock/gmock.h>

#include "base/errors.h"
#include "planner/step_costs.h"
#include "planner/step_job.h"

namespace millrace::planner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two nodes of four devices; only products take time, one second a teraflop.
cluster::Cluster machine(double spread = 0) {
  cluster::Device device;
  device.name = "d";
  device.flops["bf16"] = FlopsPerSecond(1e12);
  device.bandwidth = cluster::kUnlimited;
  device.memory = Bytes(std::int64_t{1} << 40);
  const cluster::Link unlimited{cluster::kUnlimited, Seconds{}};
  cluster::Cluster made("m", cluster::Kind::described, std::vector<cluster::Device>(8, device),
                        {0, 0, 0, 0, 1, 1, 1, 1}, {{"a", unlimited}, {"b", unlimited}}, {unlimited, 1.0});
  made.set_host({Seconds{}, spread});
  return made;
}

// As a profile would give it: forward 4, backward 4 + 4.
Layout profiled(int pipeline, std::int64_t micro_batches, const std::string& schedule) {
  Layout layout;
  layout.model = {8, 64, 2, 256, 16, 128};
  layout.pipeline = pipeline;
  layout.global_batch = micro_batches;
  layout.schedule = schedule;
  layout.profiled = ProfiledStage{4, 4, 4, 0};
  return layout;
}

TEST(Step, MakespansOfMethodsSection2) {
  // p = 4, m = 8, tF = 4, tB = 8: 33 · 4; interleaved over two chunks 28.5 · 4.
  EXPECT_DOUBLE_EQ(predict_step(profiled(4, 8, "1f1b"), machine()).time.value(), 132);
  EXPECT_DOUBLE_EQ(predict_step(profiled(4, 8, "gpipe"), machine()).time.value(), 132);
  Layout interleaved = profiled(4, 8, "interleaved");
  interleaved.chunks = 2;
  EXPECT_DOUBLE_EQ(predict_step(interleaved, machine()).time.value(), 114);
  // zb-h2: every span is 24 · 4, which is the steady state.
  EXPECT_DOUBLE_EQ(predict_step(profiled(4, 8, "zb-h2"), machine()).time.value(), 96);
}

TEST(Step, WaitingForMessagesCostsAHopAPass) {
  // The last stage starts after F and a hop, takes F + B and a hop back for each of 4, then the first has its last B.
  Layout layout = profiled(2, 4, "1f1b");
  layout.profiled->hop = 1;
  EXPECT_DOUBLE_EQ(predict_step(layout, machine()).time.value(), (4 + 1) + 4 * (12 + 1) + 8);
}

TEST(Step, TheSlowestDeviceSetsThePace) {
  // Eight devices in a row: the slowest of eight is expected 1.4236 deviations off the mean.
  const double even = predict_step(profiled(8, 64, "1f1b"), machine()).time.value();
  const double uneven = predict_step(profiled(8, 64, "1f1b"), machine(0.1)).time.value();
  // Filling and draining go through the others too.
  EXPECT_GT(uneven, 1.11 * even);
  EXPECT_LT(uneven, 1.14236 * even);
}

TEST(Step, CostsOfStagesAddUp) {
  Layout layout;
  layout.model = {8, 64, 2, 256, 16, 128};
  layout.pipeline = 2;
  layout.tensor = 2;
  layout.data = 2;
  layout.micro_batch = 4;
  layout.global_batch = 32;
  const StepCosts costs = step_costs(layout, machine());
  const double n = 4 * 16, layer = (24 * n * 64 * 64 + 4 * n * 16 * 64) / 2 * 1e-12;
  const double head = 2 * n * 64 * 128 / 2 * 1e-12;
  EXPECT_NEAR(costs.stages[0].forward.compute, 4 * layer, 1e-18);
  EXPECT_NEAR(costs.stages[1].forward.compute, 4 * layer + head, 1e-18);
  EXPECT_EQ(costs.stages[0].forward.tensor, 0);
  EXPECT_EQ(costs.reduction.size(), 2u);
}

TEST(Step, LayersFallOnStages) {
  Layout layout = profiled(4, 8, "1f1b");
  EXPECT_THAT(layers_of_stages(layout), ElementsAre(2, 2, 2, 2));
  layout.model.layers = 10;  // with embedding and head 12
  EXPECT_THAT(layers_of_stages(layout), ElementsAre(2, 3, 3, 2));
  layout.model.layers = 9;
  EXPECT_THAT(layers_of_stages(layout), ElementsAre(3, 2, 2, 2));
  layout.pipeline = 12;
  EXPECT_THROW(layers_of_stages(layout), InvalidInput);
}

TEST(Step, MemoryCountsLiveLayers) {
  Layout layout = profiled(4, 8, "1f1b");
  const cluster::Cluster cluster = machine();
  const StepCosts costs = step_costs(layout, cluster);
  EXPECT_THAT(peak_live_layers(layout, step_order(layout, costs)), ElementsAre(8, 6, 4, 2));
  const double layer = cost::layer_activation_bytes(layout.model, {1, 1, false}, cost::Recompute::none);
  EXPECT_DOUBLE_EQ(step_memory(layout, cluster).activations, 8 * layer);
}

TEST(Step, WhatIsOpenIsTheFastestThatFits) {
  Layout layout;
  layout.model = {8, 64, 2, 256, 16, 128};
  layout.pipeline = 2;
  layout.global_batch = 8;
  layout.recompute = cost::Recompute::full;
  const StepPrediction best = predict_fastest(layout, {true, true, false}, machine());
  // Without start-up times small micro-batches and many virtual stages leave the smallest bubble.
  EXPECT_EQ(best.layout.micro_batch, 1);
  EXPECT_EQ(best.layout.chunks, 4);
  EXPECT_EQ(best.layout.schedule, "interleaved");
  layout.global_batch = 9;
  layout.data = 2;
  EXPECT_THROW(predict_step(layout, machine()), InvalidInput);
}

}  // namespace
}  // namespace millrace::planner
