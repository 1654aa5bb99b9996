// The timeline in characters, of a pipeline whose times are whole columns.
#include "record/timeline_text.h"

#include <gtest/gtest.h>

#include "sim/simulate.h"
#include "tests/program/networks.h"

namespace millrace::record {
namespace {

TEST(TimelineText, OneColumnASecond) {
  const Graph graph = test::chain(1);
  const Program program =
      test::make_program(graph, test::make_plan(graph, {{.replicas = {1, 1}, .micro_batches = 3}}), 3);
  sim::SimCosts costs = sim::zero_costs();
  costs.compute = [](const sim::Piece& piece) { return piece.kind == InstructionKind::forward ? 1_s : 2_s; };
  const sim::Simulation run = sim::simulate(graph, program, costs);
  EXPECT_EQ(timeline_text(program, run.timeline, 12),
            "rank    0 |01..aa2bb.cc|\n"
            "rank    1 |.0aa1bb2cc..|\n"
            "          0      12.00 s\n");
}

}  // namespace
}  // namespace millrace::record
