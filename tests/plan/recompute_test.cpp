// METHODS 3: what a stage keeps and how long it takes when operators are recomputed.
#include "plan/recompute.h"

#include <gmock/gmock.h>

#include "plan/assignment.h"
#include "plan/evaluator.h"
#include "tests/plan/cost_case.h"

namespace millrace::plan {
namespace {

using testing::ElementsAre;
using testing_support::CostCase;

// Layers l0 = {a, b} and l1 = {c, d}, c reads b.
Graph two_layers() {
  GraphBuilder builder("layers");
  const auto add = [&](const char* name, std::vector<TensorId> inputs, std::int64_t output, std::int64_t saved,
                       const char* layer) {
    return builder.add_cost(name, std::move(inputs),
                            {.forward_s = 1, .backward_input_s = 2, .output_bytes = output, .saved_bytes = saved},
                            layer);
  };
  const TensorId a = add("a", {}, 1, 5, "l0");
  const TensorId b = add("b", {a}, 2, 7, "l0");
  const TensorId c = add("c", {b}, 4, 3, "l1");
  add("d", {c}, 1, 11, "l1");
  return builder.build();
}

TEST(Recompute, LayersAreRunAgainFromTheirBorders) {
  const Graph graph = two_layers();
  const AnalyticBytes bytes(graph, {});
  const std::vector<OpId> all{0, 1, 2, 3}, behind_a{1, 2, 3};
  const StageFootprint kept = bytes.footprint(all, 10);
  EXPECT_EQ(kept.per_slot, Bytes(10 * (5 + 7 + 3 + 11)));
  const StageFootprint again = bytes.footprint(all, 10, all);
  EXPECT_EQ(again.per_slot, Bytes(10 * 2));  // b's output, from which l1 starts
  EXPECT_EQ(again.workspace - kept.workspace, Bytes(10 * (3 + 11)));
  const StageFootprint later = bytes.footprint(behind_a, 10, behind_a);
  EXPECT_EQ(later.per_slot, Bytes(10 * (1 + 2)));  // the stage's input too
  EXPECT_EQ(later.weights, Bytes(0));
}

TEST(Recompute, OnlyWhatIsInTheMask) {
  const Graph graph = two_layers();
  const std::vector<OpId> all{0, 1, 2, 3};
  const StageGraph stage = make_stage_graph(graph, all);
  const std::vector<OpId> second{2, 3};
  const KeptActivations kept = kept_activations(stage, second, 10, 4);
  EXPECT_THAT(kept.tensors, ElementsAre(graph.find_tensor("b.output")));
  EXPECT_EQ(kept.beside_per_sample, Bytes(5 + 7));
  EXPECT_EQ(kept.recomputed, Bytes(10 * (3 + 11)));
  const std::vector<OpId> part{0, 3};  // a is run again for b's backward: c, which is not, lies between
  EXPECT_THAT(kept_activations(stage, part, 1, 4).tensors, ElementsAre(graph.find_tensor("c.output")));
}

TEST(Recompute, TensorsThatBackwardReadsComeBackWithTheirSegment) {
  GraphBuilder builder("mlp");
  TensorId x = builder.input("x", {Dims{3}});
  x = builder.add({.name = "a",
                   .kind = "linear",
                   .inputs = {x},
                   .attributes = {{"out_features", std::int64_t{5}}},
                   .layer = "one"});
  x = builder.add({.name = "r", .kind = "relu", .inputs = {x}, .layer = "one"});
  builder.add({.name = "b",
               .kind = "linear",
               .inputs = {x},
               .attributes = {{"out_features", std::int64_t{2}}},
               .layer = "one"});
  const Graph graph = builder.build();
  const std::vector<OpId> all{0, 1, 2};
  const AnalyticBytes bytes(graph, {});
  EXPECT_EQ(bytes.footprint(all, 1).per_slot, Bytes((3 + 5) * 4));
  EXPECT_EQ(bytes.footprint(all, 1, all).per_slot, Bytes(3 * 4));  // the input alone
  const KeptActivations kept = kept_activations(make_stage_graph(graph, all), all, 2, 4);
  EXPECT_EQ(kept.recomputed, Bytes(2 * 5 * 4));  // relu's output
}

TEST(Recompute, ForwardIsPaidTwice) {
  // p = 4, m = 8, gpipe, recompute on all but the last stage: F = 1, B = 1 + 2 there, F = 1.5, B = 2.5 on the last. The
  // slowest forward and the slowest backward are of different stages: 47.5, not the 44 of (m−1) max c + Σc.
  GraphBuilder builder("four");
  std::vector<TensorId> last;
  for (int i = 0; i < 4; ++i) {
    const double forward = i < 3 ? 1 : 1.5, backward = i < 3 ? 2 : 2.5;
    last = {builder.add_cost(fmt::format("n{}", i), last, {.forward_s = forward, .backward_input_s = backward})};
  }
  CostCase c(builder.build(), {.speeds = {1, 1, 1, 1}}, 8, 8);
  c.problem.schedule = "gpipe";
  const std::vector<StageCut> cuts{{{0}, 1}, {{1}, 1}, {{2}, 1}, {{3}, 1}};
  Plan plan = assign(c.problem, 1, cuts);
  EXPECT_DOUBLE_EQ(ClosedFormEvaluator(c.problem).evaluate(plan).iteration_time_s, 3 * 3 + 4 + 7 * 4);
  for (int s = 0; s < 3; ++s) {
    Stage& stage = plan.pipelines[0].stages[static_cast<std::size_t>(s)];
    stage.recompute = stage.ops;
  }
  const PlanReport report = ClosedFormEvaluator(c.problem).evaluate(plan);
  EXPECT_DOUBLE_EQ(report.iteration_time_s, 47.5);
  EXPECT_DOUBLE_EQ(report.stages[0].backward_s, 3);
  EXPECT_DOUBLE_EQ(report.stages[3].backward_s, 2.5);
}

}  // namespace
}  // namespace millrace::plan
