// What the verifier says about typical faults.
#include "program/verifier.h"

#include <gmock/gmock.h>

#include "base/errors.h"
#include "program/compute_order.h"
#include "program/lowering.h"
#include "tests/program/networks.h"

namespace millrace::test {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

auto says(const std::string& text) { return Contains(Field(&Problem::text, HasSubstr(text))); }

TEST(Verifier, NamesWhoWaitsForWhatInADeadlock) {
  const Graph graph = chain(1);
  const Plan plan = make_plan(graph, {{.replicas = {1, 1}, .micro_batches = 2}});
  // Stage 0 wants the gradient of micro-batch 0 before it sends micro-batch 1, stage 1 has both forwards first.
  ComputeOrder order(plan);
  order.lane({0, 0}).forward(0).backward(0).forward(1).backward(1);
  order.lane({0, 1}).forward(0).forward(1).backward(0).backward(1);
  const std::vector<Problem> problems = verify(graph, lower(graph, plan, order, 4));
  EXPECT_THAT(problems, says("deadlock: rank 0: receive_gradient of linear0.output, micro-batch 0, from rank 1 "
                             "(instruction 2 of 10) waits for ever"));
  EXPECT_THAT(problems, says("deadlock: rank 1: receive_activation of linear0.output, micro-batch 1, from rank 0 "
                             "(instruction 2 of 9) waits for ever"));
}

TEST(Verifier, FindsOrdersThatLeaveComputationOut) {
  const Graph graph = chain(1);
  const Plan plan = make_plan(graph, {{.replicas = {1}, .micro_batches = 2}});
  ComputeOrder order(plan);
  order.lane({0, 0}).forward(0).backward(0).forward(1);
  EXPECT_THAT(verify(graph, lower(graph, plan, order, 4)), says("never completes micro-batch 1"));
  ComputeOrder early(plan);
  early.lane({0, 0}).backward(0).forward(0).forward(1).backward(1);
  EXPECT_THAT(verify(graph, lower(graph, plan, early, 4)), says("its forward has not run"));
}

TEST(Verifier, AcceptsBackwardInTwoHalvesAndFindsMissingOnes) {
  const Graph graph = chain(2);
  const Plan plan = make_plan(graph, {{.replicas = {1, 2}, .micro_batches = 1}});
  ComputeOrder order(plan);
  order.lane({0, 0}).forward(0).backward_input(0).backward_weight(0);
  order.lane({0, 1}).forward(0).backward_input(0).backward_weight(0);
  EXPECT_THAT(verify(graph, lower(graph, plan, order, 4)), IsEmpty());
  ComputeOrder half(plan);
  half.lane({0, 0}).forward(0).backward_input(0);
  half.lane({0, 1}).forward(0).backward_input(0).backward_weight(0);
  EXPECT_THAT(verify(graph, lower(graph, plan, half, 4)), says("no backward_weight"));
}

TEST(Verifier, FindsCollectivesInDifferentOrders) {
  const Graph graph = chain(2);
  Plan plan = make_plan(graph, {{.replicas = {2}, .micro_batches = 1}});
  plan.bucket_size = 80_B;
  Program program = make_program(graph, plan, 4);
  ASSERT_EQ(program.buckets.size(), 2U);
  auto& list = program.ranks[1].instructions;
  ASSERT_EQ(list[2].kind, InstructionKind::reduce_gradients);
  std::swap(list[2], list[3]);
  EXPECT_THAT(verify(graph, program), says("bucket 0 is reduced after bucket 1; all ranks keep one order"));
}

TEST(Verifier, FindsMessagesThatAnotherOrderWouldCross) {
  const Graph graph = chain(1);
  const Plan plan = make_plan(graph, {{.replicas = {1, 1}, .micro_batches = 2}}, "gpipe");
  Program program = make_program(graph, plan, 4);
  for (Transfer& transfer : program.transfers) transfer.tag = 0;
  EXPECT_THAT(verify(graph, program), IsEmpty());  // one edge each way: the order tells messages apart
  auto& list = program.ranks[0].instructions;      // forward 0, send 0, forward 1, send 1
  std::swap(list[1], list[2]);
  std::swap(list[2], list[3]);
  ASSERT_EQ(list[2].kind, InstructionKind::send_activation);
  EXPECT_THAT(verify(graph, program), says("in another order than they are received"));
}

TEST(Verifier, RefusesIndicesOutOfRange) {
  const Graph graph = chain(1);
  Program program = make_program(graph, make_plan(graph, {{.replicas = {1}}}), 4);
  program.ranks[0].instructions[0].micro_batch = 1;
  EXPECT_THAT(verify(graph, program), says("rank 0, instruction 0 (forward): micro-batch 1 does not exist"));
  EXPECT_THAT([&] { require_verified(graph, program); }, testing::Throws<Error>());
}

TEST(Verifier, HoldsActivationsAgainstTheLimitOfEachRank) {
  // REPORTS M01: 100 MB a micro-batch on four stages under 1F1B are 400, 300, 200 and 100 MB.
  const Graph graph = chain(3);
  const Plan plan = make_plan(graph, {{.replicas = {1, 1, 1, 1}, .micro_batches = 8}});
  const Program program = make_program(graph, plan, 8);
  StageCosts costs;
  costs.activations.assign(4, Bytes(100'000'000));
  costs.limit = {Bytes(400'000'000), Bytes(300'000'000), Bytes(200'000'000), Bytes(100'000'000)};
  EXPECT_THAT(verify_memory(graph, program, costs), IsEmpty());
  costs.limit[0] = Bytes(350'000'000);
  EXPECT_THAT(verify_memory(graph, program, costs),
              says("rank 0: forward of stage 0 of pipeline 0, micro-batch 3 (instruction 6): the rank keeps 400000000 "
                   "bytes of activations then; its limit is 350000000"));
}

TEST(Verifier, NamesBothSidesOfCrossedReductions) {
  const Graph graph = chain(2);
  Plan plan = make_plan(graph, {{.replicas = {2}, .micro_batches = 1}});
  plan.bucket_size = 80_B;
  Program program = make_program(graph, plan, 4);
  std::swap(program.ranks[1].instructions[2], program.ranks[1].instructions[3]);
  EXPECT_THAT(verify(graph, program),
              says("rank 0: reduce_gradients of bucket 0 (linear1.weight and 1 more) over ranks 0, 1 "
                   "(instruction 2) meets rank 1: reduce_gradients of bucket 1"));
}

}  // namespace
}  // namespace millrace::test
