// Incremental figures of stage labels against the evaluator and against labels made anew, after random moves.
#include "partitioners/common/fm/labels.h"

#include <gmock/gmock.h>

#include "partitioners/common/fm/improve.h"
#include "plan/evaluator.h"
#include "tests/partitioners/division_case.h"
#include "tests/partitioners/random_graphs.h"

namespace millrace::partitioners::fm {
namespace {

using testing_support::DivisionCase;
using testing_support::random_graph;

// Some linears on one weight, batch norms and skips: what only graphs with kernels have.
Graph tied_network() {
  GraphBuilder builder("tied");
  TensorId x = builder.input("x", {Dims{6}});
  TensorId weight = -1;
  for (int i = 0; i < 6; ++i) {
    const TensorId y =
        builder.add({.name = fmt::format("fc{}", i),
                     .kind = "linear",
                     .inputs = {x},
                     .attributes = {{"out_features", std::int64_t{6}}},
                     .shared_parameters = i % 2 == 1 ? std::vector<TensorId>{weight, -1} : std::vector<TensorId>{}});
    weight = builder.find_tensor("fc0.weight");
    const TensorId z = builder.add({.name = fmt::format("relu{}", i), .kind = "relu", .inputs = {y}});
    x = builder.add({.name = fmt::format("add{}", i), .kind = "add", .inputs = {x, z}});
  }
  const TensorId label = builder.label("labels", {Dims{}, ElementType::index});
  builder.add({.name = "loss", .kind = "cross_entropy", .inputs = {x, label}});
  return builder.build();
}

// Moves nodes at random for a while, as local search may.
void wander(Labels& labels, Draws& draws, int steps) {
  const std::size_t nodes = labels.stage_of().size();
  for (int i = 0; i < steps; ++i) {
    const Node node = draws.below(nodes);
    const auto [first, last] = labels.range(node);
    ASSERT_LE(first, labels.stage(node));
    ASSERT_GE(last, labels.stage(node));
    const int to = first + draws.below(static_cast<std::size_t>(last - first) + 1);
    if (to != labels.stage(node) && labels.count(labels.stage(node)) > 1) labels.move(node, to);
  }
}

void expect_equal(const Labels& a, const Labels& b) {
  for (int s = 0; s < a.stages(); ++s) {
    const auto i = static_cast<std::size_t>(s);
    EXPECT_EQ(a.seconds()[i].forward, b.seconds()[i].forward) << s;
    EXPECT_EQ(a.seconds()[i].backward, b.seconds()[i].backward) << s;
    EXPECT_EQ(a.sums()[i].weights, b.sums()[i].weights) << s;
    EXPECT_EQ(a.sums()[i].elements, b.sums()[i].elements) << s;
    EXPECT_EQ(a.sums()[i].kept, b.sums()[i].kept) << s;
    EXPECT_EQ(a.sums()[i].kept_once, b.sums()[i].kept_once) << s;
    EXPECT_EQ(a.sums()[i].border, b.sums()[i].border) << s;
    EXPECT_EQ(a.count(s), b.count(s)) << s;
  }
  EXPECT_EQ(a.received(), b.received());
  EXPECT_EQ(a.value(), b.value());
}

TEST(Labels, FiguresAfterRandomMovesEqualFiguresMadeAnew) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    for (const plan::Shape shape : {plan::Shape{1, 4, 4}, plan::Shape{1, 3, 7}, plan::Shape{2, 2, 3}}) {
      const DivisionCase setting(seed == 0 ? tied_network() : random_graph(30, seed), shape, true, 0.1);
      Labels labels(setting.model(), setting.random_division(seed));
      Draws draws(seed, "moves");
      for (int round = 0; round < 10; ++round) {
        wander(labels, draws, 20);
        expect_equal(labels, Labels(setting.model(), labels.stage_of()));
      }
    }
  }
}

TEST(Labels, TimeAndBytesAreThoseOfTheEvaluator) {
  for (std::uint64_t seed = 1; seed < 12; ++seed) {
    for (const char* schedule : {"1f1b", "gpipe"}) {
      DivisionCase setting(random_graph(24, seed), {1, 4, 4}, false);
      setting.problem.schedule = schedule;
      setting.make();
      Labels labels(setting.model(), setting.random_division(seed));
      Draws draws(seed, "moves");
      wander(labels, draws, 50);
      plan::ClosedFormEvaluator evaluate(setting.problem);
      const plan::PlanReport report = evaluate.evaluate(setting.plan(labels.stage_of()));
      EXPECT_NEAR(labels.value().fitness, report.iteration_time_s, 1e-9 * report.iteration_time_s);
      EXPECT_EQ(2 * setting.problem.micro_batches * labels.received(), report.bytes_injected);
      setting.problem.objective = plan::Objective::bottleneck;
      EXPECT_NEAR(labels.value().fitness, report.bottleneck_s, 1e-9 * report.bottleneck_s);
    }
  }
}

TEST(Labels, MemoryIsThatOfTheMemoryModel) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    for (const plan::Recompute recompute : {plan::Recompute::none, plan::Recompute::all}) {
      DivisionCase setting(seed == 0 ? tied_network() : random_graph(24, seed), {1, 3, 3}, true);
      setting.problem.recompute = recompute;
      setting.make();
      Labels labels(setting.model(), setting.random_division(seed));
      Draws draws(seed, "moves");
      wander(labels, draws, 50);
      const plan::AnalyticBytes bytes(setting.graph, setting.problem.sizes);
      const Plan plan = setting.plan(labels.stage_of());
      for (int s = 0; s < 3; ++s) {
        const Stage& stage = plan.pipelines[0].stages[static_cast<std::size_t>(s)];
        const plan::StageFootprint footprint = bytes.footprint(stage.ops, 12, stage.recompute);
        const StageSums& sums = labels.sums()[static_cast<std::size_t>(s)];
        EXPECT_EQ(sums.weights, footprint.weights.value());
        EXPECT_EQ(sums.elements * 8, footprint.optimizer.value());
        EXPECT_EQ(12 * sums.kept + sums.kept_once, footprint.per_slot.value());
        EXPECT_EQ(12 * 3 * sums.border, footprint.messages.value());
        const plan::StageMemory memory = plan::stage_memory(footprint, 3 - s);
        EXPECT_EQ(setting.machine->memory(s, sums), static_cast<double>((memory.total() - memory.workspace).value()));
      }
      plan::ClosedFormEvaluator evaluate(setting.problem);
      const plan::PlanReport report = evaluate.evaluate(plan);
      if (report.feasible) {
        EXPECT_NEAR(labels.value().fitness, report.iteration_time_s, 1e-9 * report.iteration_time_s);
      }
    }
  }
}

TEST(Labels, ReductionIsNearThatOfTheEvaluator) {
  // Between powers of two bytes its time is interpolated.
  for (std::uint64_t seed = 1; seed < 6; ++seed) {
    const DivisionCase setting(random_graph(24, seed), {1, 3, 6});
    const Labels labels(setting.model(), setting.random_division(seed));
    plan::ClosedFormEvaluator evaluate(setting.problem);
    const plan::PlanReport report = evaluate.evaluate(setting.plan(labels.stage_of()));
    EXPECT_NEAR(labels.value().fitness, report.iteration_time_s, 0.01 * report.iteration_time_s);
  }
}

TEST(Labels, GroupsHaveTheFiguresOfTheirOperators) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const DivisionCase setting(seed == 0 ? tied_network() : random_graph(30, seed), {1, 4, 4}, true, 0.1);
    const StageOf stage_of = setting.random_division(seed);
    std::vector<Node> group_of(stage_of.begin(), stage_of.end());
    const Netlist coarse = contract(setting.netlist, group_of, 4);
    const Times times = contract(*setting.model().times, group_of, 4);
    const Labels groups({&coarse, &times, setting.machine.get()}, {0, 1, 2, 3});
    const Labels labels(setting.model(), stage_of);
    for (int s = 0; s < 4; ++s) {
      const auto i = static_cast<std::size_t>(s);
      EXPECT_EQ(groups.seconds()[i].forward, labels.seconds()[i].forward);
      EXPECT_EQ(groups.sums()[i].kept, labels.sums()[i].kept);
      EXPECT_EQ(groups.sums()[i].border, labels.sums()[i].border);
      EXPECT_EQ(groups.sums()[i].weights, labels.sums()[i].weights);
    }
    EXPECT_EQ(groups.received(), labels.received());
    EXPECT_EQ(groups.value(), labels.value());
  }
}

TEST(Improve, NeverWorsensAndKeepsDivisionsInOrder) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const DivisionCase setting(random_graph(60, seed, seed % 2 == 0 ? 4 : 20), {1, 5, 5}, seed % 3 == 0, 0.01);
    Labels labels(setting.model(), setting.random_division(seed));
    const Machine::Value before = labels.value();
    improve(labels, {}, Deadline::max());
    EXPECT_LT(labels.value(), before);
    expect_equal(labels, Labels(setting.model(), labels.stage_of()));
    EXPECT_TRUE(setting.in_order(labels.stage_of()));
    const Machine::Value once = labels.value();
    improve(labels, {}, Deadline::max());
    EXPECT_LE(labels.value(), once);
  }
}

TEST(Improve, StopsAtTheDeadline) {
  const DivisionCase setting(random_graph(60, 1), {1, 5, 5});
  Labels labels(setting.model(), setting.random_division(1));
  const StageOf before = labels.stage_of();
  improve(labels, {}, Deadline::min());
  EXPECT_EQ(labels.stage_of(), before);
}

}  // namespace
}  // namespace millrace::partitioners::fm
