// Figures of a report against arithmetic by hand, and the proven bounds.
#include "plan/evaluator.h"

#include <gtest/gtest.h>

#include "base/errors.h"

#include "plan/assignment.h"
#include "plan/bounds.h"
#include "tests/plan/table_cost.h"

namespace millrace::plan {
namespace {

using testing_support::Case;
using testing_support::chain;

std::vector<StageCut> one_each(int size) {
  std::vector<StageCut> cuts;
  for (OpId op = 0; op < size; ++op) cuts.push_back({{op}, 1});
  return cuts;
}

TEST(ClosedFormEvaluator, EvenPipeline) {
  Case c(chain(4), {1, 1, 1, 1}, {3, 3, 3, 3}, 2, 8);
  const PlanReport report = ClosedFormEvaluator(c.problem).evaluate(assign(c.problem, 1, one_each(4)));
  EXPECT_NEAR(report.iteration_time_s, 33, 1e-9);
  EXPECT_NEAR(report.bubble_fraction, 3.0 / 11, 1e-9);
  EXPECT_NEAR(report.throughput_samples_per_s, 16.0 / 33, 1e-9);
  EXPECT_NEAR(report.bottleneck_s, 3, 1e-9);
  EXPECT_NEAR(report.balance, 1, 1e-9);
  EXPECT_NEAR(report.stages[1].forward_s, 1, 1e-9);
  EXPECT_NEAR(report.stages[1].backward_s, 2, 1e-9);
  // 3 borders × 8 micro-batches × 2 rows × 4 bytes, there and back.
  EXPECT_EQ(report.bytes_injected, 3 * 8 * 2 * 4 * 2);
  EXPECT_NEAR(*report.bound, 24, 1e-9);  // 96 s of work on 4 devices
  EXPECT_NEAR(*report.optimality_gap, 9.0 / 24, 1e-9);
}

TEST(ClosedFormEvaluator, TransfersCountForTheReceivingStage) {
  Case c(chain(2), {1, 1}, {3, 3}, 1, 4, 0.5);
  const PlanReport report = ClosedFormEvaluator(c.problem).evaluate(assign(c.problem, 1, one_each(2)));
  EXPECT_NEAR(report.stages[1].transfer_s, 0.5, 1e-12);
  EXPECT_NEAR(report.iteration_time_s, 3 + 4 + 3 * 4, 1e-9);
}

TEST(ClosedFormEvaluator, ReductionHidesBehindTheDrain) {
  // Two linears, each a stage of two replicas: stage 0 ends last, so only its reduction of 1.5 s is exposed.
  GraphBuilder builder("two");
  TensorId x = builder.input("x", {Dims{1}});
  for (const char* name : {"a", "b"}) {
    x = builder.add({.name = name, .kind = "linear", .inputs = {x}, .attributes = {{"out_features", std::int64_t{1}}}});
  }
  Case c(builder.build(), {1, 1, 1, 1}, {6, 6}, 2, 2, 0, 1.5);
  const std::vector<StageCut> cuts{{{0}, 2}, {{1}, 2}};
  const PlanReport report = ClosedFormEvaluator(c.problem).evaluate(assign(c.problem, 1, cuts));
  EXPECT_NEAR(report.iteration_time_s, 3 * 3 + 1.5, 1e-9);
  ASSERT_TRUE(report.hidden_communication.gradients);
  EXPECT_NEAR(*report.hidden_communication.gradients, 0.5, 1e-9);
  EXPECT_NEAR(report.stages[0].reduction_s, 1.5, 1e-12);
}

// One operator a stage; `devices` are those of the stages of each pipeline.
Plan on_devices(const plan::Problem& problem, const std::vector<std::vector<int>>& devices) {
  Plan plan;
  plan.schedule = problem.schedule;
  for (const std::vector<int>& stages : devices) {
    Pipeline& pipeline = plan.pipelines.emplace_back();
    pipeline.share = 1.0 / static_cast<double>(devices.size());
    pipeline.micro_batches = problem.micro_batches / static_cast<std::int64_t>(devices.size());
    for (std::size_t s = 0; s < stages.size(); ++s) {
      Stage& stage = pipeline.stages.emplace_back();
      stage.ops = std::vector<OpId>{static_cast<OpId>(s)};
      stage.devices = {stages[s]};
      stage.shares = {1.0};
    }
  }
  return plan;
}

// METHODS 2: tF = 1, tB = 2 in all: p = 4, m = 8 with 2 chunks 28.5; chimera p = 4, m = 4 16.
TEST(ClosedFormEvaluator, DevicesWithSeveralStagesTakeTurns) {
  Case c(chain(8), {1, 1, 1, 1}, std::vector<double>(8, 1.5), 1, 8);
  c.problem.schedule = "interleaved";
  const PlanReport turns = ClosedFormEvaluator(c.problem).evaluate(on_devices(c.problem, {{0, 1, 2, 3, 0, 1, 2, 3}}));
  EXPECT_NEAR(turns.iteration_time_s, 28.5, 1e-9);
  EXPECT_NEAR(turns.bubble_fraction, 4.5 / 28.5, 1e-9);
  EXPECT_NEAR(turns.bottleneck_s, 3, 1e-9);
  EXPECT_NEAR(turns.balance, 1, 1e-9);
  // Device 0, the fullest, keeps 2·3 + 4 + 1 chunks, each with two tensors of one number.
  const StageMemory first = turns.stages[0].memory, second = turns.stages[4].memory;
  EXPECT_EQ(turns.peak_memory_bytes, (Bytes(11 * 8) + first.buffers + second.buffers + first.workspace).value());

  Case d(chain(4), {1, 1, 1, 1}, {3, 3, 3, 3}, 1, 4);
  d.problem.schedule = "chimera";
  const PlanReport ways = ClosedFormEvaluator(d.problem).evaluate(on_devices(d.problem, {{0, 1, 2, 3}, {3, 2, 1, 0}}));
  EXPECT_NEAR(ways.iteration_time_s, 16, 1e-9);
  EXPECT_NEAR(ways.bottleneck_s, 6, 1e-9);
}

TEST(ClosedFormEvaluator, WhatStaysOnADeviceIsNotSent) {
  Case c(chain(4), {1, 1}, {3, 3, 3, 3}, 1, 4, 0.5);
  c.problem.schedule = "zb-v";
  const PlanReport report = ClosedFormEvaluator(c.problem).evaluate(on_devices(c.problem, {{0, 1, 1, 0}}));
  EXPECT_EQ(report.stages[1].transfer_s, 0.5);
  EXPECT_EQ(report.stages[2].transfer_s, 0);
  EXPECT_EQ(report.bytes_injected, 2 * 4 * 2 * 4);  // two borders, four rows of four bytes, there and back
}

TEST(ClosedFormEvaluator, SlowestReplicaSetsTheStage) {
  Case c(chain(1), {1, 0.5}, {6}, 6, 1);
  Plan plan = assign(c.problem, 1, std::vector<StageCut>{{{0}, 2}});
  EXPECT_NEAR(ClosedFormEvaluator(c.problem).evaluate(plan).iteration_time_s, 6, 1e-9);  // 3 rows at half speed
  plan = assign(c.problem, 1, std::vector<StageCut>{{{0}, 2}}, Shares::by_speed);
  EXPECT_NEAR(ClosedFormEvaluator(c.problem).evaluate(plan).iteration_time_s, 4, 1e-9);  // 4 rows and 2 rows
}

TEST(LowerBound, GiantOperatorLimitsOnlyWhereReplicationIsOff) {
  Case c(chain(7), {1, 1, 1, 1}, {1, 1, 1, 20, 1, 1, 1}, 4, 1);
  EXPECT_NEAR(*lower_bound(c.problem), 6.5, 1e-9);
  c.problem.pipelines = 1;
  c.problem.stages = 4;
  EXPECT_NEAR(*lower_bound(c.problem), 26, 1e-9);  // one micro-batch goes through all stages
  c.problem.objective = Objective::bottleneck;
  EXPECT_NEAR(*lower_bound(c.problem), 20.0 / 4, 1e-9);  // for each of 4 samples
  c.problem.objective = Objective::memory_efficiency;
  EXPECT_FALSE(lower_bound(c.problem));
}

TEST(Objectives, NamesAndRanking) {
  EXPECT_EQ(objective_by_name("memory_efficiency"), Objective::memory_efficiency);
  EXPECT_THROW(objective_by_name("speed"), InvalidInput);
  Candidate fast, lean, broken;
  fast.report.iteration_time_s = 1;
  fast.report.memory_efficiency = 1;
  fast.report.batch = lean.report.batch = broken.report.batch = 1;
  lean.report.iteration_time_s = 2;
  lean.report.memory_efficiency = 3;
  broken.report.feasible = false;
  EXPECT_TRUE(better(Objective::throughput, fast, lean));
  EXPECT_TRUE(better(Objective::memory_efficiency, lean, fast));
  EXPECT_TRUE(better(Objective::throughput, lean, broken));
  EXPECT_FALSE(better(Objective::throughput, fast, fast));
}

}  // namespace
}  // namespace millrace::plan
