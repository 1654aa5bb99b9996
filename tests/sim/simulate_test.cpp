// What the simulator does with messages, reductions, rows and timelines.
#include "sim/simulate.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "base/errors.h"
#include "graph/graph_builder.h"
#include "program/lowering.h"
#include "program/stage_dag.h"
#include "schedules/registry.h"
#include "tests/program/networks.h"
#include "tests/sim/spans.h"

namespace millrace::sim {
namespace {

using testing::ElementsAre;

SimCosts unit_costs() {
  SimCosts costs = zero_costs();
  costs.compute = [](const Piece& piece) { return piece.kind == InstructionKind::forward ? 1_s : 2_s; };
  return costs;
}

TEST(Simulate, TimelineHasEveryInstructionInOrder) {
  const Graph graph = test::chain(1);
  const Program program = test::make_program(graph, test::make_plan(graph, {{.replicas = {1, 1}}}), 1);
  const Simulation run = simulate(graph, program, unit_costs());
  std::vector<std::tuple<int, int, double, double>> rows;
  for (const TimelineRow& row : run.timeline.rows) {
    EXPECT_EQ(row.instruction,
              program.ranks[static_cast<std::size_t>(row.rank)].instructions[static_cast<std::size_t>(row.position)]);
    rows.emplace_back(row.rank, row.position, row.start.value(), row.end.value());
  }
  using Row = std::tuple<int, int, double, double>;
  EXPECT_THAT(rows, ElementsAre(Row(0, 0, 0, 1), Row(0, 1, 1, 1), Row(0, 2, 1, 4), Row(0, 3, 4, 6), Row(0, 4, 6, 6),
                                Row(0, 5, 6, 6),  // rank 0
                                Row(1, 0, 0, 1), Row(1, 1, 1, 2), Row(1, 2, 2, 4), Row(1, 3, 4, 4), Row(1, 4, 4, 6)));
  EXPECT_THAT(run.busy, ElementsAre(3_s, 3_s));
  EXPECT_THAT(run.idle, ElementsAre(3_s, 3_s));
  EXPECT_DOUBLE_EQ(run.bubble_fraction, 0.5);
}

TEST(Simulate, BytesThatCostOperatorsGiveAreTakenAsTheyAre) {
  GraphBuilder builder("bytes");
  const OpFigures figures{.forward_s = 1, .parameter_bytes = 1000, .output_bytes = 10};
  builder.add_cost("b", {builder.add_cost("a", {}, figures)}, figures);
  const Graph graph = builder.build();
  SimCosts costs = zero_costs();
  std::vector<std::int64_t> moved, reduced;
  costs.transfer = [&](Bytes bytes, int, int) {
    if (bytes > 0_B) moved.push_back(bytes.value());
    return Seconds(0);
  };
  costs.collective = [&](InstructionKind kind, Bytes bytes, std::span<const int>) {
    if (kind == InstructionKind::all_reduce && bytes > 8_B) reduced.push_back(bytes.value());  // 8: the norm
    return Seconds(0);
  };
  simulate(graph, test::make_program(graph, test::make_plan(graph, {{.replicas = {1, 1}}}), 3), costs);
  EXPECT_THAT(moved, ElementsAre(30, 30));  // rows × bytes, and the gradient back
  simulate(graph, test::make_program(graph, test::make_plan(graph, {{.replicas = {1}}, {.replicas = {1}}}), 2), costs);
  EXPECT_THAT(reduced, testing::Each(2000));
  EXPECT_FALSE(reduced.empty());
}

// One pipeline of `stages` stages of two linears and the iteration in steady state, forwards 1 s, backwards 2 s.
double steady(const std::string& schedule, const std::vector<test::PipelineShape>& shapes, const SimCosts& costs) {
  const Graph graph = test::chain(2 * static_cast<int>(shapes.front().replicas.size()));
  const std::int64_t rows = shapes.front().micro_batches * 4;
  const Program program = test::make_program(graph, test::make_plan(graph, shapes, schedule), rows);
  Options options;
  options.iterations = 4 + program.overlap;
  const std::vector<double> ends = ends_of_iterations(simulate(graph, program, costs, options));
  return ends[3] - ends[2];
}

// Two linears with forwards, input and weight gradients of 1 s each, of weight gradients 2 s; their sums take 7 and 3
// s.
TEST(Simulate, DeferredWeightGradientsWidenTheWindowOfReductions) {
  const Graph graph = test::chain(2);
  test::PipelineShape shape{.replicas = {2}, .micro_batches = 2};
  Plan plan = test::make_plan(graph, {shape});
  plan.bucket_size = 80_B;
  SimCosts costs = zero_costs();
  costs.compute = [](const Piece& piece) {
    const auto linears =
        static_cast<double>(std::count_if(piece.ops.begin(), piece.ops.end(), [](OpId op) { return op < 2; }));
    const double each = piece.kind == InstructionKind::backward          ? 3
                        : piece.kind == InstructionKind::backward_weight ? 2
                                                                         : 1;
    return Seconds(linears * each);
  };
  int calls = 0;
  costs.reduction = [&](Bytes, std::span<const int>) { return calls++ % 2 == 0 ? 7_s : 3_s; };
  const auto run = [&](const std::string& deferred) {
    plan.schedule_options[schedules::kDeferredWeights] = deferred;
    const ComputeOrder order = schedules::compute_order(plan, make_stage_dag(graph, plan));
    return simulate(graph, lower(graph, plan, order, 4, {.hiding = Hiding::update}), costs);
  };
  // F 0-2, B 2-8, F 8-10, B 10-16: linear1 is complete at 13, its sum at 20, that of linear0 at 23.
  const Simulation at_once = run("0");
  EXPECT_DOUBLE_EQ(at_once.makespan.value(), 23);
  EXPECT_DOUBLE_EQ(at_once.exposed[0][1].value(), 7);
  // B of micro-batch 0 to 8, F to 10, its input gradients to 12; W of linear1 12-14, sum to 21; W of linear0 14-16.
  EXPECT_DOUBLE_EQ(run("1").makespan.value(), 24);
  // F 0-2, inputs 2-4, F 4-6, inputs 6-8; W of linear1 8-12, sum to 19; W of linear0 12-16, sum to 22.
  const Simulation deferred = run("2");
  EXPECT_DOUBLE_EQ(deferred.makespan.value(), 22);
  EXPECT_DOUBLE_EQ(deferred.exposed[0][1].value(), 6);
  EXPECT_DOUBLE_EQ(deferred.transfer[0][1].value(), 10);
  EXPECT_DOUBLE_EQ(deferred.busy[0].value(), 16);
  EXPECT_EQ(deferred.peak_live_micro_batches[0], 2);
}

TEST(Simulate, AnUpdateCopiesWeightsThatAreStashed) {
  SimCosts costs = unit_costs();
  costs.copy = [](Bytes, int) { return Seconds(0.25); };
  const std::vector<test::PipelineShape> one{{.replicas = {1}, .micro_batches = 5}};
  const std::vector<test::PipelineShape> two{{.replicas = {1, 1}, .micro_batches = 5}};
  EXPECT_DOUBLE_EQ(steady("1f1b", two, costs), 6 * 3);       // no stash
  EXPECT_DOUBLE_EQ(steady("pipedream", one, costs), 5 * 3);  // a backward follows its forward at once
  EXPECT_DOUBLE_EQ(steady("pipedream", two, costs), 5 * (3 + 0.25));
  EXPECT_DOUBLE_EQ(steady("pipedream-2bw", two, costs), 5 * 3 + 0.25);
}

TEST(Simulate, AlikePipelinesThatNeverFlushMeetInEveryUpdate) {
  SimCosts costs = unit_costs();
  costs.collective = [](InstructionKind kind, Bytes bytes, std::span<const int>) {
    return kind == InstructionKind::all_reduce && bytes > 8_B ? Seconds(0.5) : Seconds(0);
  };
  const std::vector<test::PipelineShape> pipelines{{.replicas = {1, 1}, .micro_batches = 5, .share = 0.5},
                                                   {.replicas = {1, 1}, .micro_batches = 5, .share = 0.5}};
  const std::vector<test::PipelineShape> replicas{{.replicas = {2, 2}, .micro_batches = 5}};
  EXPECT_DOUBLE_EQ(steady("pipedream", pipelines, costs), 5 * (3 + 0.5));
  EXPECT_DOUBLE_EQ(steady("pipedream-2bw", pipelines, costs), 5 * 3 + 0.5);
  for (const std::string schedule : {"pipedream", "pipedream-2bw"}) {
    EXPECT_DOUBLE_EQ(steady(schedule, pipelines, costs), steady(schedule, replicas, costs)) << schedule;
  }
}

TEST(Simulate, GradientsAreSummedAsTheCostsSay) {
  const Graph graph = test::chain(1);
  const Program program = test::make_program(graph, test::make_plan(graph, {{.replicas = {1}}, {.replicas = {1}}}), 2);
  SimCosts costs = unit_costs();
  costs.reduction = [](Bytes, std::span<const int> ranks) { return Seconds(ranks.size() == 2 ? 7 : 1); };
  EXPECT_EQ(simulate(graph, program, costs).iteration_time, 10_s);
}

TEST(Simulate, CostsSeeRowsRanksAndBytes) {
  const Graph graph = test::chain(1);  // 4 numbers a row
  const Program program = test::make_program(graph, test::make_plan(graph, {{.replicas = {1, 2}}}), 5);
  SimCosts costs = zero_costs();
  std::vector<std::tuple<int, int, std::int64_t>> computed;
  costs.compute = [&](const Piece& piece) {
    if (piece.kind == InstructionKind::forward) computed.emplace_back(piece.stage, piece.rank, piece.rows);
    return Seconds(0);
  };
  std::vector<std::tuple<std::int64_t, int, int>> moved;
  costs.transfer = [&](Bytes bytes, int from, int to) {
    if (bytes > 0_B) moved.emplace_back(bytes.value(), from, to);
    return Seconds(0);
  };
  simulate(graph, program, costs);
  EXPECT_THAT(computed, testing::UnorderedElementsAre(std::tuple(0, 0, 5), std::tuple(1, 1, 3), std::tuple(1, 2, 2)));
  EXPECT_THAT(moved, testing::UnorderedElementsAre(std::tuple(48, 0, 1), std::tuple(32, 0, 2), std::tuple(48, 1, 0),
                                                   std::tuple(32, 2, 0)));
}

TEST(Simulate, ComputationOfNoRowsCostsNothing) {
  const Graph graph = test::chain(1);
  const Program program = test::make_program(graph, test::make_plan(graph, {{.replicas = {1, 2}}}), 1);
  EXPECT_THAT(simulate(graph, program, unit_costs()).busy, ElementsAre(3_s, 3_s, 0_s));
}

TEST(Simulate, ReductionsOfARankRunOneAfterTheOther) {
  const Graph graph = test::chain(2);
  Plan plan = test::make_plan(graph, {{.replicas = {2}}});
  plan.bucket_size = 80_B;  // two buckets
  const Program program = test::make_program(graph, plan, 2);
  SimCosts costs = unit_costs();
  costs.collective = [](InstructionKind, Bytes bytes, std::span<const int>) { return bytes == 8_B ? 1_s : 10_s; };
  costs.update = [](Bytes, int) { return 3_s; };
  // Computation ends at 3, the reductions at 13 and 23, the norm at 24, the updates at 27 and 30.
  EXPECT_EQ(simulate(graph, program, costs).iteration_time, 30_s);
}

TEST(Simulate, ReductionsStartWithTheLastOwner) {
  const Graph graph = test::chain(3);
  const Plan plan = test::make_plan(
      graph, {{.replicas = {1, 1}, .share = 0.5}, {.replicas = {1, 1}, .micro_batches = 2, .share = 0.5}});
  const Program program = test::make_program(graph, plan, 4);
  SimCosts costs = unit_costs();
  costs.collective = [](InstructionKind, Bytes bytes, std::span<const int>) { return bytes == 8_B ? 0_s : 5_s; };
  // Pipeline 0 ends at 6, pipeline 1 at 9: its last stage at 7, its first at 9.
  EXPECT_EQ(simulate(graph, program, costs).iteration_time, 14_s);
}

// One linear a bucket, of 20, 20 elements: reductions of 2 s and gathers of 3 s follow each other, an update takes 1 s.
TEST(Simulate, PartsOfAnUpdateAreGatheredBeforeTheNextIteration) {
  const Graph graph = test::chain(2);
  Plan plan = test::make_plan(graph, {{.replicas = {2}, .micro_batches = 1}}, "gpipe");
  plan.bucket_size = 80_B;
  SimCosts costs = zero_costs();
  costs.compute = [](const Piece& piece) { return piece.kind == InstructionKind::forward ? 1_s : 4_s; };
  costs.collective = [](InstructionKind kind, Bytes bytes, std::span<const int>) {
    if (bytes == 8_B) return 0_s;
    return kind == InstructionKind::reduce_scatter ? 2_s : kind == InstructionKind::all_gather ? 3_s : 4_s;
  };
  costs.update = [](Bytes bytes, int) { return Seconds(static_cast<double>(bytes.value()) / 40.0); };
  const auto time = [&](const LoweringOptions& options) {
    const ComputeOrder order = schedules::compute_order(plan, make_stage_dag(graph, plan));
    return simulate(graph, lower(graph, plan, order, 4, options), costs).iteration_time;
  };
  // Whole: 5, two sums of 4, two updates of 2 (80 bytes each).
  EXPECT_EQ(time({}), 5_s + 8_s + 4_s);
  // In parts: 5, two halves of 2, an update of 1; then a gather of 3 beside an update of 1, and another one.
  EXPECT_EQ(time({.shard_optimizer = true}), 5_s + 4_s + 1_s + 6_s);
}

// One linear a bucket: the second half of the backward comes behind the update of the first one's bucket.
TEST(Simulate, UpdatesInsideOfABackwardTakeTheirTimeThere) {
  const Graph graph = test::chain(2);
  Plan plan = test::make_plan(graph, {{.replicas = {1}, .micro_batches = 1}}, "gpipe");
  plan.bucket_size = 80_B;
  SimCosts costs = zero_costs();
  costs.compute = [](const Piece& piece) {
    return Seconds(piece.kind == InstructionKind::forward ? 1.0 : static_cast<double>(piece.ops.size()));
  };
  costs.update = [](Bytes, int) { return 5_s; };
  const ComputeOrder order = schedules::compute_order(plan, make_stage_dag(graph, plan));
  const Simulation run = simulate(graph, lower(graph, plan, order, 1, {.hiding = Hiding::update}), costs);
  EXPECT_EQ(run.makespan, 1_s + 3_s + 10_s);
  for (const TimelineRow& row : run.timeline.rows) {
    if (row.instruction.bucket == 0) {
      EXPECT_EQ(row.start, 3_s);  // behind the loss and linear1
      EXPECT_EQ(row.end, 8_s);
    }
  }
}

TEST(Simulate, MessagesWaitUntilTheirReceiveIsPosted) {
  const Graph graph = test::chain(1);
  const Plan plan = test::make_plan(graph, {{.replicas = {1, 1}, .micro_batches = 4}}, "gpipe");
  const ComputeOrder order = schedules::compute_order(plan, make_stage_dag(graph, plan));
  SimCosts costs = zero_costs();
  costs.compute = [](const Piece& piece) {
    if (piece.kind != InstructionKind::forward) return 0_s;
    return piece.stage == 0 ? 1_s : 10_s;
  };
  costs.transfer = [](Bytes, int from, int) { return from == 0 ? 4_s : 0_s; };
  const auto time = [&](int window) {
    return simulate(graph, lower(graph, plan, order, 4, {.receive_window = window}), costs).iteration_time;
  };
  EXPECT_EQ(time(0), 57_s);  // 1, then four times a flight of 4 and a forward of 10
  EXPECT_EQ(time(1), 45_s);  // the first arrives at 5, the others while the stage computes
  EXPECT_EQ(time(8), 45_s);
}

TEST(Simulate, RefusesProgramsThatCannotEnd) {
  const Graph graph = test::chain(1);
  Program program = test::make_program(graph, test::make_plan(graph, {{.replicas = {1, 1}}}), 1);
  program.ranks[0].instructions.erase(program.ranks[0].instructions.begin() + 1);  // its send
  EXPECT_THAT(
      [&] { simulate(graph, program, zero_costs()); },
      testing::ThrowsMessage<Error>(testing::HasSubstr("rank 1 waits for ever at instruction 0 (receive_activation)")));
}

}  // namespace
}  // namespace millrace::sim
