// Weight gradients at the end of an iteration, layer by layer: what moves where, and what of it the verifier catches.
#include "program/deferred_weights.h"

#include <gmock/gmock.h>

#include "base/errors.h"
#include "program/describe.h"
#include "program/liveness.h"
#include "program/lowering.h"
#include "program/verifier.h"
#include "program/weight_segments.h"
#include "schedules/registry.h"
#include "tests/program/networks.h"
#include "tests/program/symbolic_run.h"

namespace millrace::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Plan deferring(Plan plan, int micro_batches) {
  plan.schedule_options[schedules::kDeferredWeights] = std::to_string(micro_batches);
  return plan;
}

// Kinds, micro-batches and segments of the computations of a rank, and its reductions.
std::vector<std::string> words_of(const Graph& graph, const Program& program, std::size_t rank) {
  std::vector<std::string> words;
  for (const Instruction& at : program.ranks[rank].instructions) {
    std::string text(name(at.kind));
    if (at.kind == InstructionKind::reduce_gradients) {
      text += " " + std::to_string(at.bucket) + (at.op < 0 ? "" : " in " + graph.op(at.op).name);
    } else if (at.bucket >= 0 || at.transfer >= 0) {
      continue;
    } else {
      text += " " + std::to_string(at.micro_batch);
      if (at.segment >= 0) text += "." + std::to_string(at.segment);
    }
    words.push_back(text);
  }
  return words;
}

Program deferred_program(const Graph& graph, const Plan& plan, std::int64_t batch) {
  const ComputeOrder order = schedules::compute_order(plan, make_stage_dag(graph, plan));
  Program program = lower(graph, plan, order, batch, {.hiding = Hiding::update});
  EXPECT_THAT(verify(graph, program), IsEmpty());
  return program;
}

// One stage of two linears on two ranks, a bucket a linear.
Plan two_replicas(const Graph& graph, std::int64_t micro_batches, const std::string& schedule = "1f1b") {
  Plan plan = make_plan(graph, {{.replicas = {2}, .micro_batches = micro_batches}}, schedule);
  plan.bucket_size = 80_B;
  return plan;
}

TEST(DeferredWeights, RunAtTheEndSegmentBySegment) {
  const Graph graph = chain(2);
  const Program program = deferred_program(graph, deferring(two_replicas(graph, 3), 2), 6);
  EXPECT_THAT(words_of(graph, program, 0),
              ElementsAre("forward 0", "backward 0", "forward 1", "backward_input 1", "forward 2", "backward_input 2",
                          "backward_weight 1.0", "backward_weight 2.0", "reduce_gradients 0 in linear1",
                          "backward_weight 1.1", "backward_weight 2.1", "reduce_gradients 1 in linear0"));
  EXPECT_THAT(program.stages[0].weight_cuts, ElementsAre(1));
  EXPECT_THAT(weight_ops(program.stages[0], 0), ElementsAre(1, 2));
  EXPECT_THAT(weight_ops(program.stages[0], 1), ElementsAre(0));
  EXPECT_THAT(peak_live_micro_batches(program), ElementsAre(2, 2));
  EXPECT_EQ(program.stages[0].slots, 2);
}

TEST(DeferredWeights, MoveWhereTheScheduleSplitsAlready) {
  const Graph graph = chain(2);
  const Program program = deferred_program(graph, deferring(two_replicas(graph, 2, "zb-h1"), 1), 4);
  EXPECT_THAT(words_of(graph, program, 1),
              ElementsAre("forward 0", "backward_input 0", "backward_weight 0", "forward 1", "backward_input 1",
                          "backward_weight 1.0", "reduce_gradients 0 in linear1", "backward_weight 1.1",
                          "reduce_gradients 1 in linear0"));
}

// Stage 0 has two linears to reduce and stage 1 one: it defers half as many. Stage 2 shares its gradients with nobody.
TEST(DeferredWeights, FollowTheBytesOfTheStages) {
  const Graph graph = chain(4);
  Plan plan = make_plan(graph, {{.replicas = {2, 2, 1}, .micro_batches = 8, .ops_per_stage = {2, 1, 2}}});
  const auto deferred = [&](int micro_batches) {
    const ComputeOrder order = schedules::compute_order(plan, make_stage_dag(graph, plan));
    Program program = lower(graph, plan, order, 16);
    return divide_deferred_weights(graph, program, micro_batches);
  };
  EXPECT_THAT(deferred(0), ElementsAre(0, 0, 0));
  EXPECT_THAT(deferred(4), ElementsAre(4, 2, 0));
  EXPECT_THAT(deferred(5), ElementsAre(5, 3, 0));
  EXPECT_THAT(deferred(100), ElementsAre(8, 8, 0));
}

TEST(DeferredWeights, ChangeNoResultOfAnySynchronousSchedule) {
  for (const schedules::Entry& entry : schedules::registry()) {
    if ((entry.capabilities & schedules::kSynchronous) == 0) continue;
    for (const Graph& graph : {chain(5), skips(3), tied(4), normalised(3)}) {
      const bool chunks =
          entry.placement == schedules::Placement::in_turn || entry.placement == schedules::Placement::vee;
      const std::vector<int> replicas(chunks ? 4 : 2, 2);
      Plan plan = make_plan(graph, {{.replicas = replicas, .micro_batches = 4}}, entry.name);
      if (entry.placement != schedules::Placement::one_stage) plan = placed(plan, 2, entry.placement);
      plan.bucket_size = 80_B;
      const auto usual = symbolic_run(graph, deferred_program(graph, plan, 16));
      ASSERT_TRUE(usual.has_value()) << entry.name;
      for (const int micro_batches : {1, 3, 9}) {
        const Program program = deferred_program(graph, deferring(plan, micro_batches), 16);
        EXPECT_TRUE(symbolic_run(graph, program) == usual) << entry.name << ", " << micro_batches;
      }
    }
  }
}

TEST(DeferredWeights, AreRefusedWhereStagesRecomputeAndUnknownToOrdersWithoutAnEnd) {
  const Graph graph = chain(2);
  Plan plan = deferring(two_replicas(graph, 2), 1);
  plan.pipelines[0].stages[0].recompute = {0};
  EXPECT_THAT([&] { deferred_program(graph, plan, 4); },
              testing::ThrowsMessage<InvalidInput>(HasSubstr("stage 0 of pipeline 0 recomputes activations")));
  plan.pipelines[0].stages[0].recompute = {};
  plan.schedule = "pipedream";
  EXPECT_THAT([&] { deferred_program(graph, plan, 4); },
              testing::ThrowsMessage<InvalidInput>(HasSubstr("deferred_weights")));
}

TEST(DeferredWeights, SegmentsOutOfOrderAndReductionsTooEarlyAreFound) {
  const Graph graph = chain(2);
  const Program program = deferred_program(graph, deferring(two_replicas(graph, 3), 2), 6);
  const auto& list = program.ranks[0].instructions;
  const auto find = [&](auto fits) {
    return static_cast<std::size_t>(std::find_if(list.begin(), list.end(), fits) - list.begin());
  };
  const std::size_t first = find([](const Instruction& at) { return at.segment == 0; });
  const std::size_t second = find([](const Instruction& at) { return at.segment == 1; });
  const std::size_t reduction = find([](const Instruction& at) { return at.bucket == 1; });
  const auto found = [&](auto change) {
    Program changed = program;
    change(changed.ranks[0].instructions, changed);
    const std::vector<Problem> problems = verify(graph, changed);
    return problems.empty() ? std::string() : problems.front().text;
  };
  using List = std::vector<Instruction>;
  EXPECT_THAT(found([&](List& of, Program&) { std::swap(of[first], of[second]); }),
              HasSubstr("segment 0 of its weight gradients comes next"));
  EXPECT_THAT(found([&](List& of, Program&) { of[second].segment = -1; }),
              HasSubstr("segment 1 of its weight gradients comes next"));
  EXPECT_THAT(found([&](List& of, Program&) { of[second].segment = 2; }), HasSubstr("segment 2 does not exist"));
  EXPECT_THAT(found([&](List& of, Program&) { of.erase(of.begin() + static_cast<std::ptrdiff_t>(second)); }),
              HasSubstr("more live micro-batches than the 2 slots"));
  // Bucket 1 is that of linear0, which segment 1 completes, for micro-batch 2 last.
  EXPECT_THAT(found([&](List& of, Program&) { std::swap(of[reduction], of[reduction - 1]); }),
              HasSubstr("its gradients would be lost"));
  EXPECT_THAT(found([&](List& of, Program&) { of[reduction].op = 1; }),
              HasSubstr("it starts behind linear1, but linear0 is still to add to the bucket"));
  EXPECT_THAT(found([](List&, Program& of) { of.stages[0].weight_cuts = {0}; }),
              HasSubstr("divides its weight gradients at operator 0"));
}

// 2 slots are alive until the last segment.
TEST(DeferredWeights, KeepTheirMemoryUntilTheLastSegment) {
  const Graph graph = chain(2);
  const Program program = deferred_program(graph, deferring(two_replicas(graph, 3), 2), 6);
  StageCosts costs;
  costs.activations = {10_B};
  costs.kept_for_weights = {6_B};
  costs.limit = {16_B, 16_B};
  EXPECT_THAT(verify_memory(graph, program, costs), IsEmpty());  // 6 of micro-batch 1, 10 of micro-batch 2
  costs.limit = {15_B, 16_B};
  EXPECT_EQ(verify_memory(graph, program, costs).size(), 1U);
}

}  // namespace
}  // namespace millrace::test
