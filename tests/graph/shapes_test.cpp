// Shapes, parameters, first values and operation counts that each kind infers.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/graph/samples.h"

namespace millrace {
namespace {

using List = std::vector<std::int64_t>;

/// Output dims of the samples of one kind, in their order.
std::vector<Dims> outputs(std::string_view kind) {
  std::vector<Dims> all;
  for (const test::Sample& sample : test::samples()) {
    if (sample.kind == kind) all.push_back(test::operand_shapes(sample).outputs[0].dims);
  }
  return all;
}

TEST(Shapes, OfEveryKind) {
  EXPECT_EQ(outputs("linear"), (std::vector<Dims>{{5}, {2, 7, 3}}));
  EXPECT_EQ(outputs("conv2d"), (std::vector<Dims>{{6, 5, 4}, {4, 1, 1}}));
  EXPECT_EQ(outputs("depthwise_conv2d"), (std::vector<Dims>{{4, 5, 4}, {1, 2, 2}}));
  EXPECT_EQ(outputs("conv_transpose2d"), (std::vector<Dims>{{6, 6, 10}, {4, 5, 6}}));
  EXPECT_EQ(outputs("batch_norm"), (std::vector<Dims>{{4, 3, 2}, {4}}));
  EXPECT_EQ(outputs("layer_norm"), (std::vector<Dims>{{3, 8}, {8}}));
  EXPECT_EQ(outputs("relu"), (std::vector<Dims>{{2, 3, 4}, {}}));
  EXPECT_EQ(outputs("tanh"), (std::vector<Dims>{{5, 6}}));
  EXPECT_EQ(outputs("gelu"), (std::vector<Dims>{{5, 6}}));
  EXPECT_EQ(outputs("max_pool"), (std::vector<Dims>{{2, 4, 4}}));
  EXPECT_EQ(outputs("avg_pool"), (std::vector<Dims>{{2, 2, 3}}));
  EXPECT_EQ(outputs("global_average_pool"), (std::vector<Dims>{{5}}));
  EXPECT_EQ(outputs("add"), (std::vector<Dims>{{3, 4}}));
  EXPECT_EQ(outputs("multiply"), (std::vector<Dims>{{7}}));
  EXPECT_EQ(outputs("concat"), (std::vector<Dims>{{7, 5}, {2, 6, 2}}));
  EXPECT_EQ(outputs("select"), (std::vector<Dims>{{6}, {5, 3}, {}}));
  EXPECT_EQ(outputs("reshape"), (std::vector<Dims>{{3, 8}, {4, 2, 1, 9}, {3, 2}}));
  EXPECT_EQ(outputs("flatten"), (std::vector<Dims>{{24}, {6}, {4}}));
  EXPECT_EQ(outputs("transpose"), (std::vector<Dims>{{4, 2, 3}}));
  EXPECT_EQ(outputs("batch_matmul"), (std::vector<Dims>{{2, 3, 5}, {3, 5}}));
  EXPECT_EQ(outputs("softmax"), (std::vector<Dims>{{2, 9}}));
  EXPECT_EQ(outputs("attention"), (std::vector<Dims>{{5, 4}, {5, 4}}));
  EXPECT_EQ(outputs("additive_attention"), (std::vector<Dims>{{5, 6}}));
  EXPECT_EQ(outputs("lstm"), (std::vector<Dims>{{5, 6}, {5, 6}}));
  EXPECT_EQ(outputs("embedding"), (std::vector<Dims>{{4, 6}, {6}}));
  EXPECT_EQ(outputs("position_embedding"), (std::vector<Dims>{{4, 6}}));
  EXPECT_EQ(outputs("segment_embedding"), (std::vector<Dims>{{4, 6}}));
  EXPECT_EQ(outputs("dropout"), (std::vector<Dims>{{4, 6}}));
  EXPECT_EQ(outputs("cross_entropy"), (std::vector<Dims>{{}, {}}));
  EXPECT_EQ(outputs("mean_squared_error"), (std::vector<Dims>{{}}));
}

TEST(Shapes, OutputsAreRealAndBatchedAndNamed) {
  for (const test::Sample& sample : test::samples()) {
    const OperandShapes shapes = test::operand_shapes(sample);
    EXPECT_EQ(shapes.outputs.size(), op_schema(sample.kind).output_names.size()) << sample.kind;
    for (const TensorShape& output : shapes.outputs) {
      EXPECT_TRUE(output.batched) << sample.kind;
      EXPECT_EQ(output.element, ElementType::real) << sample.kind;
    }
  }
}

TEST(Parameters, OfConvolutionAndNorm) {
  const Attributes attributes{
      {"out_channels", 8}, {"kernel", List{3, 5}}, {"stride", List{1, 1}}, {"padding", List{0, 0}}, {"bias", true}};
  const std::vector<TensorShape> image{{.dims = {4, 9, 9}}};
  const Inference conv = op_schema("conv2d").infer(attributes, image);
  ASSERT_EQ(conv.parameters.size(), 2U);
  EXPECT_EQ(conv.parameters[0].suffix, "weight");
  EXPECT_EQ(conv.parameters[0].dims, (Dims{8, 4, 3, 5}));
  EXPECT_EQ(conv.parameters[1].dims, (Dims{8}));
  EXPECT_EQ(conv.parameters[1].initializer.kind, Initializer::Kind::uniform);
  EXPECT_DOUBLE_EQ(conv.parameters[1].initializer.scale, 1.0 / std::sqrt(60.0));

  const Inference norm = op_schema("batch_norm").infer({{"epsilon", 1e-5}, {"momentum", 0.1}}, image);
  ASSERT_EQ(norm.buffers.size(), 2U);
  EXPECT_EQ(norm.buffers[1].suffix, "running_var");
  EXPECT_EQ(norm.buffers[1].initializer.kind, Initializer::Kind::ones);
  EXPECT_EQ(norm.parameters[0].initializer.kind, Initializer::Kind::ones);
}

// A convolution backwards is the adjoint: sizes swap, where the stride leaves nothing over.
TEST(Shapes, TransposedConvolutionUndoesAConvolution) {
  for (const std::int64_t kernel : {1, 2, 3, 5}) {
    for (const std::int64_t stride : {1, 2, 3}) {
      for (std::int64_t padding = 0; padding <= kernel / 2; ++padding) {
        const Attributes attributes{{"out_channels", 3},
                                    {"kernel", List{kernel, 2}},
                                    {"stride", List{stride, 1}},
                                    {"padding", List{padding, 0}},
                                    {"bias", false}};
        const std::vector<TensorShape> small{{.dims = {3, 4, 5}}};
        const Inference up = op_schema("conv_transpose2d").infer(attributes, small);
        EXPECT_EQ(op_schema("conv2d").infer(attributes, up.outputs).outputs, small) << kernel << stride << padding;
      }
    }
  }
}

TEST(Parameters, OfAnLstmAreNamedAsPyTorchs) {
  const std::vector<TensorShape> sequence{{.dims = {7, 4}}};
  const Inference lstm = op_schema("lstm").infer({{"hidden", 3}, {"bidirectional", true}}, sequence);
  ASSERT_EQ(lstm.parameters.size(), 8U);
  EXPECT_EQ(lstm.parameters[0].suffix, "weight_ih_l0");
  EXPECT_EQ(lstm.parameters[0].dims, (Dims{12, 4}));
  EXPECT_EQ(lstm.parameters[5].suffix, "weight_hh_l0_reverse");
  EXPECT_EQ(lstm.parameters[5].dims, (Dims{12, 3}));
  EXPECT_DOUBLE_EQ(lstm.parameters[7].initializer.scale, 1.0 / std::sqrt(3.0));
}

TEST(Flops, OfProducts) {
  const auto flops = [](std::string_view kind) {
    for (const test::Sample& sample : test::samples()) {
      if (sample.kind == kind) return op_schema(kind).flops(sample.attributes, test::operand_shapes(sample));
    }
    return OpFlops{};
  };
  EXPECT_EQ(flops("linear").forward, 2.0 * 4 * 5);
  EXPECT_EQ(flops("linear").backward_weight, 2.0 * 4 * 5);
  EXPECT_EQ(flops("conv2d").forward, 2.0 * (6 * 5 * 4) * (4 * 3 * 2));
  EXPECT_EQ(flops("batch_matmul").forward, 2.0 * 2 * 3 * 4 * 5);
  EXPECT_EQ(flops("batch_matmul").backward_input, 2.0 * 2.0 * 2 * 3 * 4 * 5);
  // 15 pairs of positions of a causal sequence of 5; width 4, 2 heads.
  EXPECT_EQ(flops("attention").forward, 2.0 * 2 * 15 * 4 + 13.0 * 15 * 2);
  EXPECT_EQ(flops("flatten").forward, 0.0);
  EXPECT_EQ(flops("depthwise_conv2d").forward, 2.0 * (4 * 5 * 4) * (3 * 2));
  EXPECT_EQ(flops("conv_transpose2d").forward, 2.0 * (4 * 3 * 5) * (6 * 2 * 2));
  // Four gates of 6 units read 4 features and 6 units at each of 5 positions.
  EXPECT_EQ(flops("lstm").forward, 2.0 * 5 * 24 * (4 + 6) + 54.0 * 5 * 6);
  EXPECT_EQ(flops("additive_attention").forward, 5.0 * 7 * (14 * 4 + 13 + 2 * 6));
}

TEST(Flops, AreNeverNegative) {
  for (const test::Sample& sample : test::samples()) {
    const OpFlops flops = op_schema(sample.kind).flops(sample.attributes, test::operand_shapes(sample));
    EXPECT_GE(flops.forward, 0.0) << sample.kind;
    EXPECT_GE(flops.backward_input, 0.0) << sample.kind;
    EXPECT_GE(flops.backward_weight, 0.0) << sample.kind;
    const bool has_parameters = !test::operand_shapes(sample).parameters.empty();
    EXPECT_EQ(flops.backward_weight > 0.0, has_parameters) << sample.kind;
  }
}

}  // namespace
}  // namespace millrace
