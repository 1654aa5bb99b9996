// The runtime executes lists of instructions, whoever wrote them: edited by hand, hidden more or less, recomputed.
#include <algorithm>

#include <gtest/gtest.h>

#include "comm/shared_error.h"
#include "program/attached.h"
#include "tests/mpi/networks.h"
#include "tests/mpi/on_ranks.h"

namespace millrace::testing {
namespace {

bool is_receive(InstructionKind kind) {
  return kind == InstructionKind::receive_activation || kind == InstructionKind::receive_gradient;
}
bool is_send(InstructionKind kind) {
  return kind == InstructionKind::send_activation || kind == InstructionKind::send_gradient;
}

// Every rank turns its micro-batches round from the last to the first, which no schedule does: its receives, its
// computation and its sends move together.
void reverse_micro_batches(Program& program) {
  for (RankProgram& rank : program.ranks) {
    std::vector<std::vector<Instruction>> forwards, backwards;
    std::vector<Instruction> open, rest;
    std::vector<std::vector<Instruction>>* last = nullptr;
    for (const Instruction& at : rank.instructions) {
      if (is_send(at.kind)) {
        last->back().push_back(at);
      } else if (is_receive(at.kind) || is_computation(at.kind)) {
        open.push_back(at);
        if (is_receive(at.kind)) continue;
        last = at.kind == InstructionKind::forward ? &forwards : &backwards;
        last->push_back(std::move(open));
        open.clear();
      } else {
        rest.push_back(at);
      }
    }
    rank.instructions.clear();
    for (auto* blocks : {&forwards, &backwards}) {
      for (auto block = blocks->rbegin(); block != blocks->rend(); ++block) {
        rank.instructions.insert(rank.instructions.end(), block->begin(), block->end());
      }
    }
    rank.instructions.insert(rank.instructions.end(), rest.begin(), rest.end());
  }
}

TEST(ProgramOrders, AProgramEditedByHandGivesTheSameGradients) {
  const Graph graph = small_network("gpt");
  const SmallSource source(graph, 90, 10);
  RunSettings s = in_double();
  const Plan plan = make_plan(graph, {1, 3, 4, "gpipe"});
  const TrainingRun usual = on_ranks(3, graph, plan, source, s);
  s.edit = reverse_micro_batches;
  const TrainingRun edited = on_ranks(3, graph, plan, source, s);
  expect_equal(edited, usual, 1e-11);
  if (world_rank() == 0) {
    EXPECT_NE(edited.values, usual.values);  // sums in another order
  }
}

// METHODS 5: what is hidden is a matter of time alone.
TEST(ProgramOrders, EveryLevelOfHidingGivesTheSameBits) {
  for (const std::string& network : small_networks()) {
    SCOPED_TRACE(network);
    const Graph graph = small_network(network);
    const SmallSource source(graph, 90, 10);
    for (const std::string schedule : {"1f1b", "zb-h1", "interleaved"}) {
      SCOPED_TRACE(schedule);
      RunSettings s = twelve_iterations();
      const Plan plan = make_plan(graph, {2, 2, 4, schedule});
      s.lowering.hiding = Hiding::drain;
      const TrainingRun level1 = on_ranks(4, graph, plan, source, s);
      for (const Hiding hiding : {Hiding::backward, Hiding::update}) {
        s.lowering.hiding = hiding;
        const TrainingRun hidden = on_ranks(4, graph, plan, source, s);
        if (world_rank() != 0) continue;
        EXPECT_EQ(hidden.values, level1.values);
        EXPECT_LT(row_difference(hidden, level1), 1e-12);
      }
      Plan deferred = plan;  // the sums of a parameter keep their order
      deferred.bucket_size = 1_KiB;
      deferred.schedule_options["deferred_weights"] = "3";
      const TrainingRun hidden = on_ranks(4, graph, deferred, source, s);
      if (world_rank() != 0) continue;
      EXPECT_EQ(hidden.values, level1.values);
      EXPECT_LT(row_difference(hidden, level1), 1e-12);
    }
  }
}

TEST(ProgramOrders, WithoutANormAnInfiniteGradientChangesNoWeight) {
  const Graph graph = small_network("mlp");
  const SmallSource source(graph, 90, 10);
  RunSettings s = twelve_iterations();
  s.lowering.hiding = Hiding::update;
  s.train.optimizer.learning_rate = 1e30;
  s.train.maximum_skips = 3;
  bool failed = false;
  try {
    on_ranks(4, graph, make_plan(graph, {2, 2, 2, "1f1b"}), source, s);
  } catch (const comm::SharedError& error) {
    failed = true;
    EXPECT_NE(std::string(error.what()).find("3 iterations in a row"), std::string::npos) << error.what();
  }
  EXPECT_EQ(failed, world_rank() < 4);
  if (failed) patient_barrier();
}

// Dropout masks, batch statistics and every bit else are those of the forward.
TEST(ProgramOrders, RecomputationChangesNoBit) {
  for (const std::string network : {"resnet", "gpt"}) {
    SCOPED_TRACE(network);
    const Graph graph = network == "gpt" ? models::make("gpt", {{"layers", "2"},
                                                                {"width", "16"},
                                                                {"heads", "2"},
                                                                {"sequence", "6"},
                                                                {"vocabulary", "11"},
                                                                {"dropout", "0.2"}})
                                         : small_network(network);
    const SmallSource source(graph, 90, 10);
    const RunSettings s = twelve_iterations();
    for (const std::string schedule : {"gpipe", "zb-h1", "interleaved"}) {
      SCOPED_TRACE(schedule);
      const TrainingRun kept = on_ranks(2, graph, make_plan(graph, {1, 2, 4, schedule}), source, s);
      for (const Recompute which : {Recompute::all, Recompute::all_but_last, Recompute::chosen}) {
        SCOPED_TRACE(static_cast<int>(which));
        const TrainingRun again = on_ranks(2, graph, make_plan(graph, {1, 2, 4, schedule, which}), source, s);
        if (world_rank() != 0) continue;
        EXPECT_EQ(again.values, kept.values);
        EXPECT_EQ(row_difference(again, kept), 0.0);
        if (which == Recompute::chosen) continue;  // kernels make cheap outputs again by themselves
        EXPECT_LE(again.outcome.rank.activations_bytes, kept.outcome.rank.activations_bytes);
        if (which != Recompute::all) continue;
        EXPECT_LT(again.outcome.rank.activations_bytes, kept.outcome.rank.activations_bytes);
      }
    }
  }
}

}  // namespace
}  // namespace millrace::testing
