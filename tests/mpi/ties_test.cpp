// Parameters with several users: in one stage, in all stages, and met in another order by each stage (REPORTS R05).
#include <map>

#include <gtest/gtest.h>

#include "graph/graph_builder.h"
#include "tests/mpi/networks.h"
#include "tests/mpi/on_ranks.h"

namespace millrace::testing {
namespace {

constexpr std::int64_t kWidth = 6;

// Square layers that share two weights: each letter is a layer with the weight of that name, and a ReLU after it.
Graph tied_network(const std::string& layers) {
  GraphBuilder builder("tied");
  TensorId x = builder.input("input", {.dims = {kWidth}});
  std::map<char, TensorId> weights{{'a', -1}, {'b', -1}};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string name = "layer" + std::to_string(i);
    x = builder.add({.name = name,
                     .kind = "linear",
                     .inputs = {x},
                     .attributes = {{"out_features", kWidth}},
                     .shared_parameters = {weights.at(layers[i]), -1}});
    if (weights.at(layers[i]) < 0) weights.at(layers[i]) = builder.find_tensor(name + ".weight");
    x = builder.add({.name = name + ".relu", .kind = "relu", .inputs = {x}});
  }
  x = builder.add({.name = "head", .kind = "linear", .inputs = {x}, .attributes = {{"out_features", std::int64_t{3}}}});
  const TensorId labels = builder.label("labels", {.dims = {}, .element = ElementType::index});
  builder.add({.name = "loss", .kind = "cross_entropy", .inputs = {x, labels}});
  return builder.build();
}

// One pipeline whose stages hold so many layers each; the last one also holds head and loss.
Plan cut_after(const Graph& graph, const std::vector<int>& layers) {
  Plan plan = make_plan(graph, {1, static_cast<int>(layers.size()), 3, "1f1b"});
  OpId next = 0;
  for (std::size_t s = 0; s < layers.size(); ++s) {
    auto& ops = plan.pipelines[0].stages[s].ops;
    const bool last = s + 1 == layers.size();
    ops = OpList::range(next, last ? static_cast<OpId>(graph.size()) : next + 2 * layers[s]);
    next = ops.back() + 1;
  }
  return plan;
}

RunSettings in_double_with_momentum() {
  RunSettings settings = in_double();
  settings.train.optimizer.momentum = 0.9;
  return settings;
}

TEST(Ties, UsersInOneStageAndInThreeStagesGiveOneGradient) {
  // Stage 0 holds two users of a and meets a first; stage 1 meets b first.
  const Graph graph = tied_network("abaabab");
  ASSERT_EQ(graph.parameters().size(), 2U + 7U + 2U);
  const SmallSource source(graph, 90, 10);
  const TrainingRun one = on_one_rank(graph, source, in_double_with_momentum());
  expect_equal(on_ranks(2, graph, cut_after(graph, {3, 4}), source, in_double_with_momentum()), one, 1e-11);
  expect_equal(on_ranks(3, graph, cut_after(graph, {4, 2, 1}), source, in_double_with_momentum()), one, 1e-11);
  expect_equal(on_ranks(3, graph, cut_after(graph, {3, 1, 3}), source, in_double_with_momentum()), one, 1e-11);
}

TEST(Ties, ReplicasAndPipelinesOwnTheirCopies) {
  const Graph graph = tied_network("abba");
  const SmallSource source(graph, 90, 10);
  const TrainingRun one = on_one_rank(graph, source, in_double_with_momentum());
  expect_equal(on_ranks(6, graph, make_plan(graph, {2, 3, 2, "gpipe"}), source, in_double_with_momentum()), one, 1e-11);
  Plan plan = cut_after(graph, {2, 2});
  plan.pipelines[0].stages[0].devices = {0, 1};
  plan.pipelines[0].stages[0].shares = {0.5, 0.5};
  plan.pipelines[0].stages[1].devices = {2, 3, 4};
  plan.pipelines[0].stages[1].shares = {0.5, 0.3, 0.2};
  expect_equal(on_ranks(5, graph, plan, source, in_double_with_momentum()), one, 1e-11);
}

TEST(Ties, UntiedGptHasOneParameterMoreAndTrainsAlikeEverywhere) {
  const std::map<std::string, std::string> options{{"layers", "2"},   {"width", "16"},      {"heads", "2"},
                                                   {"sequence", "6"}, {"vocabulary", "11"}, {"tied", "false"}};
  const Graph untied = models::make("gpt", options), tied = small_network("gpt");
  EXPECT_EQ(untied.parameter_count() - tied.parameter_count(), 16 * 11);
  const SmallSource source(untied, 90, 10);
  const TrainingRun one = on_one_rank(untied, source, twelve_iterations());
  expect_equal(on_ranks(4, untied, make_plan(untied, {2, 2, 3, "1f1b"}), source, twelve_iterations()), one);
  const TrainingRun other = on_one_rank(tied, source, twelve_iterations());
  if (world_rank() == 0) {
    EXPECT_GT(row_difference(other, one), 1e-3) << "the tie changes nothing";
  }
}

}  // namespace
}  // namespace millrace::testing
