// Structure, look-ups and digest of a built graph.
#include "graph/graph.h"

#include <gmock/gmock.h>

#include "graph/footprint.h"
#include "tests/graph/small_graphs.h"

namespace millrace {
namespace {

using testing::ElementsAre;

TEST(Graph, NamesTensorsAndFindsReaders) {
  const Graph graph = test::skip_graph();
  EXPECT_EQ(graph.size(), 6);
  EXPECT_EQ(graph.op(graph.find_op("add")).name, "add");
  EXPECT_EQ(graph.find_op("subtract"), -1);
  const TensorId first = graph.find_tensor("fc1.output");
  EXPECT_THAT(graph.consumers(first), ElementsAre(graph.find_op("relu"), graph.find_op("add")));
  EXPECT_EQ(graph.tensor(first).producer, graph.find_op("fc1"));
  EXPECT_THAT(graph.consumers(graph.find_tensor("loss.correct")), ElementsAre());
  EXPECT_EQ(graph.loss(), graph.find_op("loss"));
  EXPECT_EQ(graph.parameter_count(), 4 * 3 + 3 + 3 * 3 + 3 + 3 * 2 + 2);
}

TEST(Graph, OperatorThatReadsATensorTwiceIsOneConsumer) {
  GraphBuilder builder("twice");
  const TensorId x = builder.input("x", {.dims = {2}});
  builder.add({.name = "add", .kind = "add", .inputs = {x, x}});
  const Graph graph = builder.build();
  EXPECT_THAT(graph.consumers(x), ElementsAre(0));
}

TEST(Graph, TiedParametersCountOnceAndKnowTheirUsers) {
  const Graph graph = test::tied_graph();
  const TensorId weight = graph.find_tensor("table.weight");
  EXPECT_THAT(graph.parameters(), ElementsAre(weight));
  EXPECT_EQ(graph.parameter_count(), 49);
  EXPECT_THAT(graph.consumers(weight), ElementsAre(0, 1, 2));
}

// One linear and its data: each knob of the builder is one argument.
std::string digest_of(std::string graph_name, std::string op_name, std::int64_t in, std::int64_t out, bool bias) {
  GraphBuilder builder(std::move(graph_name));
  const TensorId x = builder.input("x", {.dims = {in}});
  builder.add({.name = std::move(op_name),
               .kind = "linear",
               .inputs = {x},
               .attributes = {{"out_features", out}, {"bias", bias}}});
  return builder.build().digest();
}

TEST(Graph, DigestFollowsNamesShapesAndAttributes) {
  const std::string digest = digest_of("g", "fc", 3, 4, true);
  EXPECT_EQ(digest, digest_of("g", "fc", 3, 4, true));
  EXPECT_EQ(digest.size(), 32U);
  EXPECT_NE(digest, digest_of("h", "fc", 3, 4, true));
  EXPECT_NE(digest, digest_of("g", "fd", 3, 4, true));
  EXPECT_NE(digest, digest_of("g", "fc", 2, 4, true));
  EXPECT_NE(digest, digest_of("g", "fc", 3, 5, true));
  EXPECT_NE(digest, digest_of("g", "fc", 3, 4, false));
}

TEST(Graph, DigestFollowsAttributesThatChangeNoShape) {
  const auto with = [](const Attributes& attributes) {
    GraphBuilder builder("g");
    const TensorId x = builder.input("x", {.dims = {3, 4}});
    builder.add({.name = "norm", .kind = "layer_norm", .inputs = {x}, .attributes = attributes});
    return builder.build().digest();
  };
  EXPECT_EQ(with({}), with({{"epsilon", 1e-5}}));
  EXPECT_NE(with({}), with({{"epsilon", 1.0000000000000001e-6}}));
}

TEST(Graph, DigestFollowsWhoReadsWhat) {
  const auto with = [](bool swapped) {
    GraphBuilder builder("g");
    const TensorId a = builder.input("a", {.dims = {3}});
    const TensorId b = builder.input("b", {.dims = {3}});
    builder.add({.name = "sum", .kind = "add", .inputs = swapped ? std::vector{b, a} : std::vector{a, b}});
    return builder.build().digest();
  };
  EXPECT_NE(with(false), with(true));
}

TEST(Graph, HundredThousandOperatorsBuildAndScan) {
  constexpr int kOperators = 100'000;
  GraphBuilder builder("long");
  TensorId x = builder.input("x", {.dims = {8}});
  for (int i = 0; i < kOperators; i += 2) {
    x = builder.add(
        {.name = "fc" + std::to_string(i), .kind = "linear", .inputs = {x}, .attributes = {{"out_features", 8}}});
    x = builder.add({.name = "relu" + std::to_string(i), .kind = "relu", .inputs = {x}});
  }
  const Graph graph = builder.build();
  EXPECT_EQ(graph.size(), kOperators);
  EXPECT_EQ(graph.digest(), graph.digest());
  double total = 0.0;
  Bytes saved;
  for (OpId id = 0; id < graph.size(); ++id) {
    total += flops(graph, id).forward;
    saved += saved_bytes_per_sample(graph, std::span(&id, 1), 4);
  }
  EXPECT_EQ(total, kOperators / 2 * (2.0 * 8 * 8 + 8));
  EXPECT_EQ(saved, Bytes(kOperators * 8 * 4));
}

}  // namespace
}  // namespace millrace
