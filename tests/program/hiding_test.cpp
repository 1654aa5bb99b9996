// Where reductions and updates stand on the three levels of METHODS 5, and what recomputation and collectives add.
#include <algorithm>

#include <gmock/gmock.h>

#include "base/errors.h"
#include "program/describe.h"
#include "program/lowering.h"
#include "program/verifier.h"
#include "schedules/registry.h"
#include "tests/program/networks.h"
#include "tests/program/symbolic_run.h"

namespace millrace::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Kinds of one rank's list, with the bucket of reductions and updates and the operator that a reduction is attached to.
std::vector<std::string> list_of(const Graph& graph, const Program& program, std::size_t rank) {
  std::vector<std::string> words;
  for (const Instruction& at : program.ranks[rank].instructions) {
    std::string& text = words.emplace_back(name(at.kind));
    if (at.bucket >= 0) text += " " + std::to_string(at.bucket);
    if (at.op >= 0) text += " in " + graph.op(at.op).name;
    if (at.segment >= 0) text += " " + std::to_string(at.segment);
  }
  return words;
}

Program lowered(const Graph& graph, const Plan& plan, std::int64_t batch, const LoweringOptions& options) {
  Program program = lower(graph, plan, schedules::compute_order(plan, make_stage_dag(graph, plan)), batch, options);
  EXPECT_THAT(verify(graph, program), IsEmpty());
  EXPECT_TRUE(symbolic_run(graph, program).has_value());
  return program;
}

Plan replicated(const Graph& graph) {
  Plan plan = make_plan(graph, {{.replicas = {2}, .micro_batches = 2}});
  plan.bucket_size = 80_B;  // weight and bias of one linear
  return plan;
}

TEST(Hiding, DrainReducesBehindTheLastBackward) {
  const Graph graph = chain(2);
  const Program program = lowered(graph, replicated(graph), 4, {.hiding = Hiding::drain});
  EXPECT_THAT(list_of(graph, program, 0),
              ElementsAre("forward", "backward", "forward", "backward", "reduce_gradients 0", "reduce_gradients 1",
                          "reduce_norm", "update_weights 0", "update_weights 1"));
}

TEST(Hiding, BackwardSaysInsideOfWhatAReductionStarts) {
  const Graph graph = chain(2);
  const Program program = lowered(graph, replicated(graph), 4, {.hiding = Hiding::backward});
  EXPECT_THAT(list_of(graph, program, 1),
              ElementsAre("forward", "backward", "forward", "backward", "reduce_gradients 0 in linear1",
                          "reduce_gradients 1 in linear0", "reduce_norm", "update_weights 0", "update_weights 1"));
}

TEST(Hiding, UpdateDoesNotWaitForTheNorm) {
  const Graph graph = chain(2);
  const Program program = lowered(graph, replicated(graph), 4, {.hiding = Hiding::update});
  EXPECT_FALSE(program.norm);
  EXPECT_THAT(list_of(graph, program, 1),
              ElementsAre("forward", "backward", "forward", "backward", "reduce_gradients 0 in linear1",
                          "reduce_gradients 1 in linear0", "update_weights 0", "update_weights 1"));
}

TEST(Hiding, ABucketOfChunksIsReducedAfterItsOwnChunk) {
  // Chunk 1 of each device ends its last backward before chunk 0 does: its bucket goes first.
  const Graph graph = chain(3);
  Plan plan = make_plan(graph, {{.replicas = {2, 2, 2, 2}, .micro_batches = 2}}, "interleaved");
  plan = placed(plan, 2, schedules::Placement::in_turn);
  const Program program = lowered(graph, plan, 8, {.hiding = Hiding::drain});
  const std::vector<std::string> list = list_of(graph, program, 0);
  const auto first = std::find(list.begin(), list.end(), "reduce_gradients 0");
  ASSERT_NE(first, list.end());
  EXPECT_NE(std::find(first, list.end(), "backward"), list.end());
}

TEST(Hiding, SplitBackwardsAttachToTheLastWeightGradient) {
  const Graph graph = chain(2);
  Plan plan = replicated(graph);
  plan.schedule = "zb-h1";
  const Program program = lowered(graph, plan, 4, {.hiding = Hiding::backward});
  EXPECT_THAT(list_of(graph, program, 0),
              ElementsAre("forward", "backward_input", "backward_weight", "forward", "backward_input",
                          "backward_weight", "reduce_gradients 0 in linear1", "reduce_gradients 1 in linear0",
                          "reduce_norm", "update_weights 0", "update_weights 1"));
}

TEST(Recompute, StandsBeforeTheGradientIsWaitedFor) {
  const Graph graph = chain(3);
  for (const std::string schedule : {"1f1b", "zb-h1"}) {
    Plan plan = make_plan(graph, {{.replicas = {1, 1}, .micro_batches = 1}}, schedule);
    plan.pipelines[0].stages[0].recompute = {1};
    const Program program = lowered(graph, plan, 2, {});
    const std::string backward = schedule == "1f1b" ? "backward" : "backward_input";
    const std::vector<std::string> list = list_of(graph, program, 0);
    EXPECT_THAT(std::vector(list.begin(), list.begin() + 5),
                ElementsAre("forward", "send_activation", "recompute", "receive_gradient", backward));
  }
}

// Two shards a replica, an all-reduce in the forward of linear0 and one in its backward.
TEST(TensorParallel, CollectivesDivideTheComputation) {
  const Graph graph = chain(3);
  Plan plan = make_plan(graph, {{.replicas = {4, 2}, .micro_batches = 2}});
  plan.pipelines[0].stages[0].tensor_parallel = 2;
  plan.pipelines[0].stages[0].shares = {0.5, 0.5};
  LoweringOptions options;
  options.collectives = {{InstructionKind::all_reduce, 0, false, 0, 16}, {InstructionKind::all_reduce, 0, true, 0, 16}};
  const Program program = lowered(graph, plan, 4, options);
  EXPECT_EQ(program.stages[0].rows[0].size(), 2U);
  const std::vector<std::string> list = list_of(graph, program, 2);  // shard 0 sends
  EXPECT_THAT(std::vector(list.begin(), list.begin() + 4),
              ElementsAre("forward 0", "all_reduce", "forward 1", "send_activation"));
  // Each shard has its own part of every bucket, summed over the replicas.
  ASSERT_GE(program.buckets.size(), 3U);
  int split = 0;
  for (const Bucket& bucket : program.buckets) {
    if (bucket.stages != std::vector<std::int32_t>{0}) continue;
    EXPECT_THAT(bucket.owners, ElementsAre(bucket.shard, bucket.shard + 2));
    ++split;
  }
  EXPECT_EQ(split, 2);
  // One shard that leaves its collective out is found.
  Program broken = program;
  auto& instructions = broken.ranks[1].instructions;
  instructions.erase(instructions.begin() + 1);
  EXPECT_FALSE(verify(graph, broken).empty());
}

// A rank with both stages completes the head's last, as where the rows of its pipelines differ: the bucket of the stage
// between them in order was complete before and waited for its turn.
TEST(Hiding, NoReductionIsInsideOfABackwardBehindOneThatIsNot) {
  const Graph graph = tied(4);
  Plan plan = make_plan(graph, {{.replicas = {1, 1}, .micro_batches = 4}}, "chimera");
  plan.bucket_size = 1000_B;
  plan = placed(plan, 2, schedules::Placement::both_ways);
  const ComputeOrder usual = schedules::compute_order(plan, make_stage_dag(graph, plan));
  ComputeOrder order(plan);
  for (std::vector<ComputeAction> actions : usual.ranks()) {
    const auto head = std::find_if(actions.rbegin(), actions.rend(), [](const auto& at) { return at.stage == 1; });
    if (head != actions.rend()) std::rotate(head.base() - 1, head.base(), actions.end());
    for (const ComputeAction& at : actions) order.lane(at.stage).add(at.kind, at.micro_batch, at.lag);
  }
  const Program program = lower(graph, plan, order, 8, {.hiding = Hiding::backward});
  EXPECT_THAT(verify(graph, program), IsEmpty());
  EXPECT_TRUE(symbolic_run(graph, program).has_value());
}

TEST(Asynchronous, RefusesTiedParametersAcrossStages) {
  const Graph graph = tied(2);
  const Plan plan = make_plan(graph, {{.replicas = {1, 1}, .micro_batches = 2}}, "pipedream");
  EXPECT_THAT([&] { make_program(graph, plan, 2); },
              testing::ThrowsMessage<InvalidInput>(testing::HasSubstr("take no tied parameters across stages")));
}

}  // namespace
}  // namespace millrace::test
