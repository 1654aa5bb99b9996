// Parameters and operations of the networks against the literature and torchvision.
#include <gtest/gtest.h>

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
    testing::Values(std::tuple{"mlp", std::int64_t{784 * 512 + 512 + 512 * 512 + 512 + 5130}},
                    std::tuple{"lenet", std::int64_t{431'080}}, std::tuple{"vgg11", std::int64_t{132'863'336}},
                    std::tuple{"vgg16", std::int64_t{138'357'544}}, std::tuple{"vgg19", std::int64_t{143'667'240}},
                    std::tuple{"resnet18", std::int64_t{11'689'512}}, std::tuple{"resnet34", std::int64_t{21'797'672}},
                    std::tuple{"resnet50", std::int64_t{25'557'032}}, std::tuple{"resnet101", std::int64_t{44'549'160}},
                    std::tuple{"resnet152", std::int64_t{60'192'808}}, std::tuple{"gpt", std::int64_t{124'439'808}}));

TEST(ParameterCount, UntiedHeadAddsItsWeight) {
  EXPECT_EQ(make("gpt", {{"tied", "false"}}).parameter_count(), 124'439'808 + 50'257 * 768);
}

double multiply_adds(const Graph& graph) {
  double total = 0.0;
  for (OpId id = 0; id < graph.size(); ++id) {
    const std::string& kind = graph.op(id).schema->name;
    if (kind == "conv2d" || kind == "linear") total += flops(graph, id).forward / 2.0;
  }
  return total;
}

// torchvision 0.15 states 4.09, 1.81 and 15.47 GFLOPS (multiply-adds) of these for 224 pixels.
TEST(Flops, MultiplyAddsOfAnImage) {
  EXPECT_NEAR(multiply_adds(make("resnet50")), 4.089e9, 0.001e9);
  EXPECT_NEAR(multiply_adds(make("resnet18")), 1.814e9, 0.001e9);
  EXPECT_NEAR(multiply_adds(make("vgg16")), 15.470e9, 0.001e9);
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
