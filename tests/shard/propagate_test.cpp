// Propagation on whole networks: Megatron's split from three annotations, data parallel from one, and rules on the way.
#include <gtest/gtest.h>

#include <map>

#include <fmt/format.h>

#include "graph/graph_builder.h"
#include "models/families.h"
#include "tests/shard/expect_equal.h"

namespace millrace::shard {
namespace {

using testing::CutGraph;

Graph small_gpt(std::int64_t layers, bool tied = true, double dropout = 0.0) {
  return models::make_gpt(
      {.layers = layers, .width = 12, .heads = 3, .sequence = 4, .vocabulary = 11, .tied = tied, .dropout = dropout});
}

/// The annotations that `annotations_test.cpp` counts, as tensors.
std::vector<Given> megatron(const CutGraph& cut, std::int64_t layers) {
  std::vector<Given> given{cut.given("embedding.token.weight", split(0))};
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string block = fmt::format("blocks.{}.", i);
    given.push_back(cut.given((block + "attention.qkv.weight").c_str(), split(0)));
    given.push_back(cut.given((block + "mlp.up.weight").c_str(), split(0)));
  }
  return given;
}

Property kept(const CutGraph& cut, const ShardedGraph& sharded, const std::string& tensor, std::size_t axis = 0) {
  const TensorId id = cut.graph.find_tensor(tensor);
  EXPECT_GE(id, 0) << tensor;
  return sharded.decision.placements[static_cast<std::size_t>(id)][axis];
}

std::map<StepKind, int> count(const std::vector<Instruction>& list, bool per_iteration = false) {
  std::map<StepKind, int> counts;
  for (const Instruction& one : list) {
    if (one.kind == Instruction::Kind::convert && one.per_iteration == per_iteration) ++counts[one.step.kind];
  }
  return counts;
}

TEST(Propagate, MegatronSplitOfAGpt) {
  for (const std::int64_t layers : {1, 3, 7}) {
    const Graph graph = small_gpt(layers);
    const CutGraph cut(graph, 2, {{"tensor", 2}});
    const ShardedGraph sharded = cut.propagate(megatron(cut, layers));
    for (std::int64_t i = 0; i < layers; ++i) {
      const std::string block = fmt::format("blocks.{}.", i);
      EXPECT_EQ(kept(cut, sharded, block + "attention.qkv.bias"), split(0));
      EXPECT_EQ(kept(cut, sharded, block + "attention.core.output"), split(2));
      EXPECT_EQ(kept(cut, sharded, block + "attention.out.weight"), split(1)) << "rows";
      EXPECT_EQ(kept(cut, sharded, block + "attention.out.bias"), kReplicated);
      EXPECT_EQ(kept(cut, sharded, block + "mlp.gelu.output"), split(2));
      EXPECT_EQ(kept(cut, sharded, block + "mlp.down.weight"), split(1)) << "rows";
      EXPECT_EQ(kept(cut, sharded, block + "add2.output"), kReplicated);
      EXPECT_EQ(kept(cut, sharded, block + "norm1.weight"), kReplicated);
    }
    EXPECT_EQ(kept(cut, sharded, "head.output"), split(2)) << "logits stay split";
    // Two all-reduces of a block forward, two backward, one behind the embedding and one before the head.
    EXPECT_EQ(count(sharded.forward)[StepKind::all_reduce], 2 * layers + 1);
    EXPECT_EQ(count(sharded.backward)[StepKind::all_reduce], 2 * layers + 1);
    EXPECT_EQ(count(sharded.forward)[StepKind::all_gather], 0);
    EXPECT_EQ(count(sharded.backward)[StepKind::all_gather], 0);
    EXPECT_TRUE(count(sharded.backward, true).empty()) << "no gradient of a parameter is reduced";
    int inside = 0;
    for (const Instruction& one : sharded.forward) inside += static_cast<int>(one.inner.size());
    EXPECT_EQ(inside, 1) << "cross-entropy over the parts of the vocabulary";
    expect_same_as_whole(cut, sharded);
  }
}

TEST(Propagate, MegatronOnFourWithTwelveHeadsAndUnevenVocabulary) {
  const Graph graph = models::make_gpt(
      {.layers = 2, .width = 24, .heads = 6, .sequence = 3, .vocabulary = 11, .tied = true, .dropout = 0.3});
  const CutGraph cut(graph, 2, {{"tensor", 4}});
  expect_same_as_whole(cut, cut.propagate(megatron(cut, 2)));
}

TEST(Propagate, SequenceParallelRegionsBetweenTensorParallelOnes) {
  // A vocabulary that costs more to gather than the sums of the embedding.
  const Graph graph = models::make_gpt(
      {.layers = 2, .width = 12, .heads = 3, .sequence = 4, .vocabulary = 101, .tied = true, .dropout = 0.25});
  const CutGraph cut(graph, 2, {{"tensor", 2}});
  std::vector<Given> given = megatron(cut, 2);
  for (const char* sum :
       {"blocks.0.add1.output", "blocks.0.add2.output", "blocks.1.add1.output", "blocks.1.add2.output"}) {
    given.push_back(cut.given(sum, split(1)));
  }
  const ShardedGraph sharded = cut.propagate(given);
  EXPECT_EQ(kept(cut, sharded, "blocks.1.norm2.output"), split(1));
  EXPECT_EQ(kept(cut, sharded, "blocks.0.mlp.dropout.output"), split(1));
  // An all-gather before each column, a reduce-scatter behind each row; transposed in backward.
  EXPECT_EQ(count(sharded.forward)[StepKind::reduce_scatter], 5);
  EXPECT_EQ(count(sharded.forward)[StepKind::all_gather], 5);
  EXPECT_EQ(count(sharded.forward)[StepKind::all_reduce], 0);
  EXPECT_EQ(count(sharded.backward)[StepKind::reduce_scatter], 5);
  EXPECT_EQ(count(sharded.backward)[StepKind::all_gather], 5);
  expect_same_as_whole(cut, sharded);
}

TEST(Propagate, DataParallelFromOneAnnotation) {
  const Graph graph = models::make_resnet(
      "tiny", {.blocks = {1, 1}, .width = 4, .bottleneck = true, .small_stem = true, .classes = 5, .image = 6});
  const CutGraph cut(graph, 5, {{"data", 2}});
  const ShardedGraph sharded = cut.propagate({cut.given("input", split(0))}, {.synchronised_batch_norm = true});
  EXPECT_TRUE(count(sharded.forward).empty());
  EXPECT_TRUE(count(sharded.backward).empty());
  EXPECT_EQ(count(sharded.backward, true)[StepKind::all_reduce], static_cast<int>(graph.parameters().size()));
  EXPECT_EQ(kept(cut, sharded, "labels"), split(0)) << "through the loss, backward";
  expect_same_as_whole(cut, sharded);
}

TEST(Propagate, DataAndTensorOnTwoAxes) {
  const Graph graph = small_gpt(2, false);
  const CutGraph cut(graph, 3, {{"data", 2}, {"tensor", 2}});
  std::vector<Given> given = megatron(cut, 2);
  for (Given& one : given) one.axis = 1;
  given.push_back(cut.given("input", split(0), 0));
  given.push_back(cut.given("head.weight", split(0), 1));
  const ShardedGraph sharded = cut.propagate(given);
  EXPECT_EQ(kept(cut, sharded, "blocks.1.mlp.up.output", 0), split(0));
  EXPECT_EQ(kept(cut, sharded, "blocks.1.mlp.up.output", 1), split(2));
  EXPECT_EQ(count(sharded.backward, true)[StepKind::all_reduce], static_cast<int>(graph.parameters().size()))
      << "each gradient once, over the data axis";
  expect_same_as_whole(cut, sharded);
}

TEST(Propagate, PartialSumsGoThroughLinearOperators) {
  GraphBuilder builder("sums");
  const TensorId x = builder.input("x", {.dims = {6}});
  const TensorId a = builder.add({"a", "linear", {x}, {{"out_features", std::int64_t{4}}}});
  const TensorId b = builder.add({"b", "linear", {x}, {{"out_features", std::int64_t{4}}}});
  const TensorId sum = builder.add({"sum", "add", {a, b}});
  builder.add({"loss", "mean_squared_error", {sum, builder.label("y", {.dims = {4}})}});
  const Graph graph = builder.build();
  const CutGraph cut(graph, 3, {{"x", 2}});
  const ShardedGraph sharded = cut.propagate({cut.given("x", split(1))});
  EXPECT_EQ(kept(cut, sharded, "a.output"), kPartialSum);
  EXPECT_EQ(kept(cut, sharded, "b.weight"), split(1));
  EXPECT_EQ(count(sharded.forward)[StepKind::all_reduce], 1) << "one for both terms";
  expect_same_as_whole(cut, sharded);
}

TEST(Propagate, ConflictsTakeTheCheaper) {
  for (const bool large_weight : {true, false}) {
    GraphBuilder builder("conflict");
    const TensorId x = builder.input("x", {.dims = {64}});
    const TensorId y = builder.add({"up", "gelu", {x}});
    const TensorId z = builder.add({"op", "linear", {y}, {{"out_features", std::int64_t{large_weight ? 4096 : 4}}}});
    builder.add({"loss", "mean_squared_error", {z, builder.label("t", builder.shape(z))}});
    const Graph graph = builder.build();
    const CutGraph cut(graph, large_weight ? 2 : 4096, {{"x", 2}});
    const ShardedGraph sharded = cut.propagate({cut.given("up.output", split(1)), cut.given("op.weight", split(0))});
    const Use use = sharded.decision.uses[static_cast<std::size_t>(graph.find_op("op"))][0];
    const auto operands = cut.ops.operands(graph.find_op("op"));
    ASSERT_EQ(use.kind, Use::Kind::letter);
    // The tensors stay as given; the small one is converted.
    EXPECT_EQ(operands[large_weight ? 1U : 0U].dim_of(use.letter) >= 0, true);
    EXPECT_EQ(kept(cut, sharded, "up.output"), split(1));
    EXPECT_EQ(kept(cut, sharded, "op.weight"), split(0));
    expect_same_as_whole(cut, sharded);
  }
}

TEST(Propagate, NamesChangeNothing) {
  const Graph graph = small_gpt(2);
  GraphBuilder builder("other");
  std::map<TensorId, TensorId> now;
  for (OpId op = 0; op < graph.size(); ++op) {
    const Operator& node = graph.op(op);
    OpSpec spec{
        .name = "z" + std::to_string(graph.size() - op), .kind = node.schema->name, .attributes = node.attributes};
    for (const TensorId input : node.inputs) {
      const Tensor& tensor = graph.tensor(input);
      if (tensor.role == Role::input) now[input] = builder.input("q" + std::to_string(input), tensor.shape);
      if (tensor.role == Role::label) now[input] = builder.label("q" + std::to_string(input), tensor.shape);
      spec.inputs.push_back(now.at(input));
    }
    for (const TensorId parameter : node.parameters) {
      spec.shared_parameters.push_back(now.count(parameter) == 1 ? now.at(parameter) : -1);
    }
    builder.add(spec);
    for (std::size_t i = 0; i < node.parameters.size(); ++i) {
      now[node.parameters[i]] = spec.shared_parameters[i] >= 0 ? spec.shared_parameters[i] : node.parameters[i];
    }
    for (const TensorId output : node.outputs) now[output] = output;
  }
  const Graph renamed = builder.build();
  ASSERT_EQ(renamed.tensors().size(), graph.tensors().size());
  const CutGraph a(graph, 2, {{"tensor", 2}}), b(renamed, 2, {{"tensor", 2}});
  const std::vector<Given> given = megatron(a, 2);
  const ShardedGraph first = a.propagate(given), second = b.propagate(given);
  EXPECT_EQ(first.decision.placements, second.decision.placements);
  EXPECT_EQ(first.decision.uses, second.decision.uses);
  EXPECT_EQ(first.forward.size(), second.forward.size());
  EXPECT_EQ(first.backward.size(), second.backward.size());
}

}  // namespace
}  // namespace millrace::shard
