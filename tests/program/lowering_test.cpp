// The exact programs of small plans, and what lowering refuses.
#include "program/lowering.h"

#include <gmock/gmock.h>

#include "base/errors.h"
#include "tests/program/networks.h"

namespace millrace::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::vector<std::string> kinds(const Program& program, std::size_t rank) {
  std::vector<std::string> list;
  for (const Instruction& at : program.ranks[rank].instructions) list.emplace_back(name(at.kind));
  return list;
}

TEST(Lowering, PutsReceivesBeforeAndSendsAfterTheComputation) {
  const Graph graph = chain(1);
  const Program program = make_program(graph, make_plan(graph, {{.replicas = {1, 1}, .micro_batches = 1}}), 4);
  EXPECT_THAT(kinds(program, 0), ElementsAre("forward", "send_activation", "receive_gradient", "backward",
                                             "reduce_norm", "update_weights"));
  EXPECT_THAT(kinds(program, 1),
              ElementsAre("receive_activation", "forward", "backward", "send_gradient", "reduce_norm"));
}

TEST(Lowering, SendsSkippedTensorsStraightToEachReaderAndSumsGradientsLatestStageFirst) {
  const Graph graph = skips(2);  // first | linear0, add0 | linear1, add1, loss
  const Program program =
      make_program(graph, make_plan(graph, {{.replicas = {1, 1, 1}, .ops_per_stage = {1, 2, 3}}}), 2);
  const TensorId first = graph.find_tensor("first.output");
  std::vector<std::int32_t> readers;
  std::vector<std::int32_t> gradients_from;
  for (const Instruction& at : program.ranks[0].instructions) {
    if (at.transfer < 0) continue;
    const Transfer& transfer = program.transfers[static_cast<std::size_t>(at.transfer)];
    EXPECT_EQ(transfer.tensor, first);
    if (at.kind == InstructionKind::send_activation) readers.push_back(transfer.receiver);
    if (at.kind == InstructionKind::receive_gradient) gradients_from.push_back(transfer.sender);
  }
  EXPECT_THAT(readers, ElementsAre(1, 2));
  EXPECT_THAT(gradients_from, ElementsAre(2, 1));
  // The middle stage passes on only what it computes itself.
  for (const Transfer& transfer : program.transfers) {
    EXPECT_FALSE(transfer.sender == 1 && transfer.direction == Direction::activation && transfer.tensor == first);
  }
}

TEST(Lowering, CutsMessagesByTheRowsOfBothSides) {
  const Graph graph = chain(1);
  const Program program = make_program(graph, make_plan(graph, {{.replicas = {3, 2}}}), 12);
  std::vector<std::tuple<int, int, std::int64_t, std::int64_t>> messages;
  for (const Transfer& t : program.transfers) {
    if (t.direction == Direction::activation) messages.emplace_back(t.sender, t.receiver, t.rows.begin, t.rows.end);
  }
  EXPECT_THAT(messages, ElementsAre(std::tuple(0, 3, 0, 4), std::tuple(1, 3, 4, 6), std::tuple(1, 4, 6, 8),
                                    std::tuple(2, 4, 8, 12)));
}

TEST(Lowering, ListsComputationOfNoRowsButNoMessages) {
  const Graph graph = chain(1);
  const Program program = make_program(graph, make_plan(graph, {{.replicas = {1, 2}}}), 1);
  ASSERT_TRUE(program.stages[1].rows[0][1].empty());
  EXPECT_THAT(kinds(program, 2), ElementsAre("forward", "backward", "reduce_norm"));
}

TEST(Lowering, CountsTheSlotsOfEachStage) {
  const Graph graph = chain(3);
  const PipelineShape shape{.replicas = {1, 1, 1, 1}, .micro_batches = 8};
  const auto slots = [&](const Program& program) {
    std::vector<int> list;
    for (const ProgramStage& stage : program.stages) list.push_back(stage.slots);
    return list;
  };
  EXPECT_THAT(slots(make_program(graph, make_plan(graph, {shape}, "1f1b"), 8)), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(slots(make_program(graph, make_plan(graph, {shape}, "gpipe"), 8)), ElementsAre(8, 8, 8, 8));
}

TEST(Lowering, EvaluationHoldsForwardsAndTheirMessagesInTheSameStorageOrder) {
  const Graph graph = tied(2);
  const Plan plan = make_plan(graph, {{.replicas = {1, 2}, .micro_batches = 2}});
  const Program evaluation = lower_evaluation(graph, plan, 6);
  EXPECT_FALSE(evaluation.training);
  EXPECT_THAT(kinds(evaluation, 0), ElementsAre("forward", "send_activation", "send_activation", "forward",
                                                "send_activation", "send_activation"));
  const Program training = make_program(graph, plan, 6);
  ASSERT_EQ(evaluation.buckets.size(), training.buckets.size());
  for (std::size_t b = 0; b < training.buckets.size(); ++b) {
    EXPECT_EQ(evaluation.buckets[b].tensors, training.buckets[b].tensors);
  }
}

TEST(Lowering, RefusesStagesThatShareOnlySomeDevices) {
  const Graph graph = chain(3);
  Plan plan = make_plan(graph, {{.replicas = {2, 1, 2}, .micro_batches = 1}}, "zb-greedy");
  plan.pipelines[0].stages[2].devices = {1, 3};
  const ComputeOrder order(plan);
  EXPECT_THAT([&] { lower(graph, plan, order, 2); },
              ThrowsMessage<InvalidInput>(HasSubstr("device 1 is in stages 0 and 2 of pipeline 0; stages of a pipeline "
                                                    "that share a device share all of their devices")));
}

TEST(Lowering, RefusesMicroBatchesThatThereAreNot) {
  const Graph graph = chain(2);
  const Plan plan = make_plan(graph, {{.replicas = {1}}});
  ComputeOrder order(plan);
  order.lane({0, 0}).forward(1);
  EXPECT_THAT([&] { lower(graph, plan, order, 2); },
              ThrowsMessage<InvalidInput>(HasSubstr("micro-batch 1 of stage 0, which has 1")));
}

}  // namespace
}  // namespace millrace::test
