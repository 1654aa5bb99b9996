// Names of operators, layers, first values and borders that plans, twins and checkpoints rely on.
#include <gmock/gmock.h>

#include <cmath>

#include "graph/data_range.h"
#include "graph/stage_graph.h"
#include "models/registry.h"

namespace millrace::models {
namespace {

using testing::ElementsAre;
using testing::IsSupersetOf;

std::vector<std::string> op_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Operator& op : graph.operators()) names.push_back(op.name);
  return names;
}

/// Layers in order of appearance; each must be one run of operators.
std::vector<std::string> layers(const Graph& graph) {
  std::vector<std::string> runs;
  for (const Operator& op : graph.operators()) {
    if (runs.empty() || runs.back() != op.layer) runs.push_back(op.layer);
  }
  return runs;
}

TEST(Names, Mlp) {
  EXPECT_THAT(op_names(make("mlp")), ElementsAre("linear0", "relu0", "linear1", "relu1", "linear2", "loss"));
  EXPECT_THAT(op_names(make("mlp", {{"hidden", "[]"}})), ElementsAre("linear0", "loss"));
}

TEST(Names, ResnetAsTorchvision) {
  const Graph graph = make("resnet50");
  EXPECT_THAT(op_names(graph),
              IsSupersetOf({"conv1", "bn1", "relu", "maxpool", "layer1.0.conv3", "layer1.0.downsample.0",
                            "layer1.0.downsample.1", "layer4.2.bn3", "avgpool", "fc", "loss"}));
  EXPECT_EQ(graph.find_op("layer1.1.downsample.0"), -1);
  // The stride of a bottleneck is in its 3x3 convolution.
  EXPECT_EQ(graph.op(graph.find_op("layer2.0.conv1")).attributes.integers("stride"), (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(graph.op(graph.find_op("layer2.0.conv2")).attributes.integers("stride"), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(graph.find_op("layer1.0.relu1") >= 0, true);
  EXPECT_EQ(make("resnet18").find_op("layer1.0.downsample.0"), -1);
}

TEST(Names, VggAsTorchvision) {
  const Graph graph = make("vgg16", {{"dropout", "0.5"}});
  EXPECT_EQ(graph.tensor(graph.find_tensor("features.28.weight")).shape.dims, (Dims{512, 512, 3, 3}));
  EXPECT_EQ(graph.tensor(graph.find_tensor("features.30.output")).shape.dims, (Dims{512, 7, 7}));
  EXPECT_EQ(graph.tensor(graph.find_tensor("classifier.0.weight")).shape.dims, (Dims{4096, 25088}));
  EXPECT_THAT(op_names(graph), IsSupersetOf({"classifier.2", "classifier.5", "classifier.6"}));
  EXPECT_EQ(make("vgg16").find_op("classifier.2"), -1);
}

TEST(Names, GptBlocks) {
  EXPECT_THAT(op_names(make("gpt", {{"layers", "1"}})),
              ElementsAre("embedding.token", "embedding.position", "blocks.0.norm1", "blocks.0.attention.qkv",
                          "blocks.0.attention.core", "blocks.0.attention.out", "blocks.0.add1", "blocks.0.norm2",
                          "blocks.0.mlp.up", "blocks.0.mlp.gelu", "blocks.0.mlp.down", "blocks.0.add2", "norm", "head",
                          "loss"));
}

TEST(Layers, FollowTheFamilies) {
  EXPECT_THAT(layers(make("gpt", {{"layers", "2"}, {"dropout", "0.1"}})),
              ElementsAre("embedding", "blocks.0", "blocks.1", "head"));
  EXPECT_THAT(layers(make("resnet")), ElementsAre("stem", "layer1.0", "layer2.0", "fc"));
  EXPECT_THAT(layers(make("lenet")), ElementsAre("conv1", "conv2", "fc1", "fc2"));
  EXPECT_THAT(layers(make("mlp")), ElementsAre("linear0", "linear1", "linear2"));
  EXPECT_EQ(layers(make("vgg16")).size(), 16U);
}

TEST(FirstValues, OfGpt) {
  const Graph graph = make("gpt", {{"layers", "8"}});
  const auto initializer = [&](const char* name) { return graph.tensor(graph.find_tensor(name)).initializer; };
  EXPECT_EQ(initializer("embedding.token.weight").scale, 0.02);
  EXPECT_EQ(initializer("blocks.3.mlp.down.weight").kind, Initializer::Kind::normal);
  EXPECT_DOUBLE_EQ(initializer("blocks.3.mlp.down.weight").scale, 0.02 / 4.0);
  EXPECT_EQ(initializer("blocks.3.mlp.up.bias").kind, Initializer::Kind::zeros);
}

TEST(FirstValues, OfConvolutionsFollowTheirFanOut) {
  const Graph resnet = make("resnet18");
  const Initializer start = resnet.tensor(resnet.find_tensor("conv1.weight")).initializer;
  EXPECT_EQ(start.kind, Initializer::Kind::normal);
  EXPECT_DOUBLE_EQ(start.scale, std::sqrt(2.0 / (64 * 49)));
}

TEST(TiedHead, SharesTheTokenEmbedding) {
  const Graph graph = make("gpt", {{"layers", "1"}});
  const TensorId weight = graph.find_tensor("embedding.token.weight");
  EXPECT_THAT(graph.consumers(weight), ElementsAre(graph.find_op("embedding.token"), graph.find_op("head")));
  EXPECT_EQ(graph.find_tensor("head.weight"), -1);
  const StageGraph last = make_stage_graph(graph, std::vector<OpId>{graph.find_op("head"), graph.find_op("loss")});
  EXPECT_THAT(last.parameters, ElementsAre(weight));
}

TEST(DataRange, OfLabelsAndTokens) {
  const Graph gpt = make("gpt", {{"layers", "1"}, {"vocabulary", "97"}});
  EXPECT_EQ(label_classes(gpt), 97);
  EXPECT_EQ(index_bound(gpt, gpt.inputs()[0]), 97);
  EXPECT_EQ(gpt.tensor(gpt.labels()[0]).shape.dims, (Dims{1024}));
  const Graph mlp = make("mlp");
  EXPECT_EQ(label_classes(mlp), 10);
  EXPECT_EQ(index_bound(mlp, mlp.inputs()[0]), 0);
}

}  // namespace
}  // namespace millrace::models
