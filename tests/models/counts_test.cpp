// Parameters and operations of the networks against the literature and torchvision.
#include <gtest/gtest.h>

#include <string_view>
#include <tuple>

#include "graph/footprint.h"
#include "models/registry.h"

namespace millrace::models {
namespace {

class ParameterCount : public testing::TestWithParam<std::tuple<const char*, std::int64_t>> {};

TEST_P(ParameterCount, IsTheLiteratures) {
  const auto& [name, count] = GetParam();
  EXPECT_EQ(make(name).parameter_count(), count) << name;
}

INSTANTIATE_TEST_SUITE_P(
    Models, ParameterCount,
    testing::Values(
        std::tuple{"mlp", std::int64_t{784 * 512 + 512 + 512 * 512 + 512 + 5130}},
        std::tuple{"lenet", std::int64_t{431'080}}, std::tuple{"alexnet", std::int64_t{61'100'840}},
        std::tuple{"googlenet", std::int64_t{6'624'904}}, std::tuple{"inception_v3", std::int64_t{23'834'568}},
        std::tuple{"densenet121", std::int64_t{7'978'856}}, std::tuple{"densenet169", std::int64_t{14'149'480}},
        std::tuple{"densenet201", std::int64_t{20'013'928}}, std::tuple{"nasnet_mobile", std::int64_t{5'289'978}},
        std::tuple{"vgg11", std::int64_t{132'863'336}}, std::tuple{"vgg16", std::int64_t{138'357'544}},
        std::tuple{"vgg19", std::int64_t{143'667'240}}, std::tuple{"resnet18", std::int64_t{11'689'512}},
        std::tuple{"resnet34", std::int64_t{21'797'672}}, std::tuple{"resnet50", std::int64_t{25'557'032}},
        std::tuple{"resnet101", std::int64_t{44'549'160}}, std::tuple{"resnet152", std::int64_t{60'192'808}},
        std::tuple{"gpt", std::int64_t{124'439'808}}));

TEST(ParameterCount, UntiedHeadAddsItsWeight) {
  EXPECT_EQ(make("gpt", {{"tied", "false"}}).parameter_count(), 124'439'808 + 50'257 * 768);
}

// Two convolutions without bias, each with a scale and a shift.
std::int64_t double_conv(std::int64_t in, std::int64_t out) { return 9 * in * out + 9 * out * out + 4 * out; }

// Ronneberger et al.'s widths; every step up is a 2x2 transposed convolution with bias onto half of the channels.
TEST(ParameterCount, OfUnetFromItsDefinition) {
  std::int64_t count = double_conv(3, 64) + 64 * 2 + 2;
  for (std::int64_t width = 64; width < 1024; width *= 2) {
    count += double_conv(width, 2 * width);
    count += 4 * 2 * width * width + width + double_conv(2 * width, width);
  }
  EXPECT_EQ(count, 31'037'698);  // also what the PyTorch implementation that names follow has
  EXPECT_EQ(make("unet").parameter_count(), count);
}

/// Without the operators whose names start so.
std::int64_t parameters_without(const Graph& graph, std::string_view prefix) {
  std::int64_t count = 0;
  for (const TensorId id : graph.parameters()) {
    const Tensor& tensor = graph.tensor(id);
    if (!tensor.name.starts_with(prefix)) count += tensor.shape.elements_per_sample();
  }
  return count;
}

TEST(ParameterCount, OfBert) {
  // Encoder and pooler, as published; the classifier of two classes comes on top.
  EXPECT_EQ(parameters_without(make("bert", {{"head", "classification"}}), "classifier."), 109'482'240);
  EXPECT_EQ(make("bert", {{"head", "classification"}}).parameter_count(), 109'482'240 + 2 * 768 + 2);
  EXPECT_EQ(parameters_without(make("bert_large", {{"head", "classification"}}), "classifier."), 335'141'888);
  // The masked-LM head has no pooler; its weight is the token embedding's.
  const std::int64_t head = 768 * 768 + 768 + 2 * 768 + 30'522;
  EXPECT_EQ(make("bert").parameter_count(), 109'482'240 - (768 * 768 + 768) + head);
  EXPECT_EQ(make("bert", {{"tied", "false"}}).parameter_count(), make("bert").parameter_count() + 30'522 * 768);
}

// One direction of a layer: four gates, each with two products and PyTorch's two biases.
constexpr std::int64_t lstm(std::int64_t in, std::int64_t out) { return 4 * out * (in + out) + 8 * out; }

std::int64_t gnmt(std::int64_t layers, std::int64_t h, std::int64_t v, bool tied) {
  const std::int64_t half = layers / 2;
  const std::int64_t encoder = 2 * lstm(h, h) + lstm(2 * h, h) + (half - 2) * lstm(h, h);
  const std::int64_t attention = 2 * h * h + 2 * h + 1;
  const std::int64_t decoder = lstm(h, h) + attention + (half - 1) * lstm(2 * h, h);
  return (tied ? 1 : 2) * v * h + encoder + decoder + v * h + v;
}

TEST(ParameterCount, OfGnmtFromItsDefinition) {
  EXPECT_EQ(gnmt(8, 1024, 32320, true), 160'671'297);  // what NVIDIA's version prints
  EXPECT_EQ(make("gnmt").parameter_count(), gnmt(8, 1024, 32320, true));
  EXPECT_EQ(make("gnmt16").parameter_count(), gnmt(16, 1024, 32320, true));
  EXPECT_EQ(make("gnmt16", {{"tied", "false"}, {"width", "512"}, {"vocabulary", "1000"}}).parameter_count(),
            gnmt(16, 512, 1000, false));
  EXPECT_EQ(make("gnmt", {{"layers", "4"}}).parameter_count(), gnmt(4, 1024, 32320, true));
}

double multiply_adds(const Graph& graph) {
  double total = 0.0;
  for (OpId id = 0; id < graph.size(); ++id) {
    const std::string& kind = graph.op(id).schema->name;
    if (kind == "conv2d" || kind == "depthwise_conv2d" || kind == "linear") total += flops(graph, id).forward / 2.0;
  }
  return total;
}

// torchvision 0.15 states these GFLOPS (multiply-adds) for 224 pixels, 299 of Inception v3.
TEST(Flops, MultiplyAddsOfAnImage) {
  EXPECT_NEAR(multiply_adds(make("resnet50")), 4.089e9, 0.001e9);
  EXPECT_NEAR(multiply_adds(make("resnet18")), 1.814e9, 0.001e9);
  EXPECT_NEAR(multiply_adds(make("vgg16")), 15.470e9, 0.001e9);
  EXPECT_NEAR(multiply_adds(make("alexnet")), 0.714e9, 0.001e9);
  EXPECT_NEAR(multiply_adds(make("googlenet")), 1.498e9, 0.001e9);
  EXPECT_NEAR(multiply_adds(make("inception_v3")), 5.713e9, 0.001e9);
  EXPECT_NEAR(multiply_adds(make("densenet121")), 2.834e9, 0.001e9);
  // The paper's table 2 has 564 million for 1,001 classes.
  EXPECT_NEAR(multiply_adds(make("nasnet_mobile")), 0.564e9, 0.005e9);
}

TEST(Flops, OtherOperatorsOfResnetAreSmall) {
  const Graph graph = make("resnet50");
  double total = 0.0;
  for (OpId id = 0; id < graph.size(); ++id) total += flops(graph, id).forward;
  EXPECT_GT(total, 2.0 * multiply_adds(graph));
  EXPECT_LT(total, 1.05 * 2.0 * multiply_adds(graph));
}

}  // namespace
}  // namespace millrace::models
