// A tensor that several later stages read goes straight to each, and its gradients come back to be summed (METHODS 4).
#include <numeric>

#include <gtest/gtest.h>

#include "graph/graph_builder.h"
#include "tests/mpi/networks.h"
#include "tests/mpi/on_ranks.h"

namespace millrace::testing {
namespace {

// `first` is read by every later layer: 2 operators a layer, each layer a stage where the cuts are {0, 2, 4, …}.
Graph skip_network() {
  GraphBuilder builder("skips");
  const auto linear = [&](const std::string& name, TensorId x, std::int64_t out) {
    return builder.add({.name = name, .kind = "linear", .inputs = {x}, .attributes = {{"out_features", out}}});
  };
  TensorId x = builder.input("input", {.dims = {5}});
  const TensorId first = builder.add({.name = "first.gelu", .kind = "gelu", .inputs = {linear("first", x, 6)}});
  x = first;
  for (const std::string name : {"second", "third", "fourth"}) {
    x = builder.add({.name = name + ".add", .kind = "add", .inputs = {linear(name, x, 6), first}});
  }
  const TensorId labels = builder.label("labels", {.dims = {}, .element = ElementType::index});
  builder.add({.name = "loss", .kind = "cross_entropy", .inputs = {linear("head", x, 3), labels}});
  return builder.build();
}

TEST(Skips, EveryReaderReturnsItsPartOfTheGradient) {
  const Graph graph = skip_network();
  ASSERT_EQ(graph.size(), 10);
  const SmallSource source(graph, 90, 10);
  const TrainingRun one = on_one_rank(graph, source, in_double());
  expect_equal(on_ranks(5, graph, make_plan(graph, {1, 5, 3, "1f1b"}), source, in_double()), one, 1e-11);
  expect_equal(on_ranks(6, graph, make_plan(graph, {2, 3, 2, "gpipe"}), source, in_double()), one, 1e-11);
}

TEST(Skips, ReadersMayHaveOtherReplicasThanTheProducer) {
  const Graph graph = skip_network();
  const SmallSource source(graph, 90, 10);
  RunSettings settings = in_double();
  settings.batch = 23;
  Plan plan = make_plan(graph, {1, 3, 2, "1f1b"});
  const std::vector<std::vector<int>> devices{{0, 1}, {2}, {3, 4, 5}};
  const std::vector<std::vector<double>> shares{{0.4, 0.6}, {1.0}, {0.5, 0.2, 0.3}};
  for (std::size_t s = 0; s < 3; ++s) {
    plan.pipelines[0].stages[s].devices = devices[s];
    plan.pipelines[0].stages[s].shares = shares[s];
  }
  expect_equal(on_ranks(6, graph, plan, source, settings), on_one_rank(graph, source, settings), 1e-11);
}

}  // namespace
}  // namespace millrace::testing
