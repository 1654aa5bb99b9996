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

TEST(Names, BranchingNetworksAsTorchvision) {
  EXPECT_THAT(op_names(make("alexnet", {{"dropout", "0.5"}})),
              IsSupersetOf({"features.0", "features.12", "classifier.0", "classifier.1", "classifier.6"}));
  EXPECT_THAT(op_names(make("googlenet")),
              IsSupersetOf({"conv1.conv", "conv1.bn", "inception3a.branch1.conv", "inception3a.branch2.1.bn",
                            "inception4e.branch4.0", "inception5b.branch4.1.conv", "fc"}));
  EXPECT_THAT(op_names(make("inception_v3")),
              IsSupersetOf({"Conv2d_1a_3x3.conv", "Mixed_5b.branch5x5_2.bn", "Mixed_6a.branch3x3dbl_3.conv",
                            "Mixed_6e.branch7x7dbl_5.conv", "Mixed_7a.branch7x7x3_4.conv", "Mixed_7c.branch3x3_2b.conv",
                            "Mixed_7c.branch3x3dbl_3a.conv", "Mixed_7c.branch_pool.conv", "fc"}));
  EXPECT_THAT(op_names(make("densenet121")),
              IsSupersetOf({"features.conv0", "features.norm0", "features.denseblock1.denselayer6.conv2",
                            "features.denseblock3.denselayer24.norm1", "features.transition3.conv", "features.norm5",
                            "classifier"}));
  EXPECT_EQ(make("densenet121").find_op("features.denseblock1.denselayer7.conv1"), -1);
}

TEST(Shapes, OfBranchingNetworks) {
  const auto dims = [](const char* model, const char* tensor) {
    const Graph graph = make(model);
    return graph.tensor(graph.find_tensor(tensor)).shape.dims;
  };
  EXPECT_EQ(dims("alexnet", "features.12.output"), (Dims{256, 6, 6}));
  EXPECT_EQ(dims("googlenet", "inception3b.concat.output"), (Dims{480, 28, 28}));
  EXPECT_EQ(dims("googlenet", "inception5b.concat.output"), (Dims{1024, 7, 7}));
  EXPECT_EQ(dims("inception_v3", "Mixed_5d.concat.output"), (Dims{288, 35, 35}));
  EXPECT_EQ(dims("inception_v3", "Mixed_6e.concat.output"), (Dims{768, 17, 17}));
  EXPECT_EQ(dims("inception_v3", "Mixed_7c.concat.output"), (Dims{2048, 8, 8}));
  EXPECT_EQ(dims("densenet121", "features.denseblock4.concat.output"), (Dims{1024, 7, 7}));
  EXPECT_EQ(dims("unet", "up4.conv.double_conv.5.output"), (Dims{64, 224, 224}));
  EXPECT_EQ(dims("unet", "labels"), (Dims{224, 224}));
  EXPECT_EQ(dims("nasnet_mobile", "cell_15.concat.output"), (Dims{1056, 7, 7}));
  EXPECT_EQ(dims("gnmt", "decoder.classifier.output"), (Dims{50, 32320}));
}

// A cell reads the outputs of the two before it.
TEST(Names, NasnetCells) {
  const Graph graph = make("nasnet_mobile");
  const auto reads = [&](const char* reader, const char* source) {
    const Operator& op = graph.op(graph.find_op(reader));
    return op.inputs == std::vector<TensorId>{graph.find_tensor(std::string(source) + ".output")};
  };
  EXPECT_TRUE(reads("cell_3.conv_1x1.relu", "cell_2.concat"));
  EXPECT_TRUE(reads("cell_3.conv_prev_1x1.relu", "cell_1.concat"));
  EXPECT_TRUE(reads("cell_6.relu", "cell_3.concat"));
  EXPECT_TRUE(reads("cell_6.conv_1x1.relu", "reduction_cell_0.concat"));
  EXPECT_TRUE(reads("cell_stem_1.relu", "conv0.bn"));
}

TEST(Names, BertBlocks) {
  EXPECT_THAT(
      op_names(make("bert", {{"layers", "1"}})),
      ElementsAre("embedding.token", "embedding.position", "embedding.segment", "embedding.norm",
                  "blocks.0.attention.qkv", "blocks.0.attention.core", "blocks.0.attention.out", "blocks.0.add1",
                  "blocks.0.norm1", "blocks.0.mlp.up", "blocks.0.mlp.gelu", "blocks.0.mlp.down", "blocks.0.add2",
                  "blocks.0.norm2", "head.transform", "head.gelu", "head.norm", "head", "loss"));
}

TEST(Names, GnmtLayers) {
  const Graph graph = make("gnmt", {{"dropout", "0.2"}});
  EXPECT_THAT(op_names(graph),
              IsSupersetOf({"encoder.embedder", "encoder.rnn_layers.0", "encoder.rnn_layers.3.add", "decoder.embedder",
                            "decoder.att_rnn.rnn", "decoder.att_rnn.attn", "decoder.rnn_layers.2.dropout",
                            "decoder.rnn_layers.2.add", "decoder.classifier"}));
  // The first two layers of the encoder are not residual, and the first of the decoder's after attention.
  for (const char* name : {"encoder.rnn_layers.1.add", "decoder.rnn_layers.0.add", "decoder.embedder.weight"}) {
    EXPECT_EQ(graph.find_op(name), -1) << name;
  }
  EXPECT_EQ(graph.find_tensor("decoder.embedder.weight"), -1);
  EXPECT_GE(make("gnmt", {{"tied", "false"}}).find_tensor("decoder.embedder.weight"), 0);
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
  EXPECT_EQ(layers(make("alexnet")).size(), 8U);
  EXPECT_EQ(layers(make("googlenet")).size(), 3U + 9U + 1U);
  EXPECT_EQ(layers(make("inception_v3")).size(), 5U + 11U + 1U);
  EXPECT_EQ(layers(make("densenet121")).size(), 1U + 58U + 3U + 1U);
  EXPECT_THAT(layers(make("unet")),
              ElementsAre("inc", "down1", "down2", "down3", "down4", "up1", "up2", "up3", "up4", "outc"));
  EXPECT_EQ(layers(make("nasnet_mobile")).size(), 1U + 2U + 12U + 2U + 1U);
  EXPECT_THAT(layers(make("bert", {{"layers", "2"}, {"dropout", "0.1"}})),
              ElementsAre("embedding", "blocks.0", "blocks.1", "head"));
  EXPECT_THAT(layers(make("gnmt", {{"layers", "4"}})),
              ElementsAre("encoder.embedder", "encoder.rnn_layers.0", "encoder.rnn_layers.1", "decoder.embedder",
                          "decoder.att_rnn", "decoder.rnn_layers.0", "decoder.classifier"));
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
