// What each kind's backward keeps from its forward.
#include <gmock/gmock.h>

#include "tests/graph/samples.h"

namespace millrace {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Of the `number`-th sample of the kind.
Saved saved(std::string_view kind, int number = 0) {
  for (const test::Sample& sample : test::samples()) {
    if (sample.kind == kind && number-- == 0) {
      return op_schema(kind).saved(sample.attributes, test::operand_shapes(sample));
    }
  }
  return {};
}

TEST(SavedOf, KindsThatReadTheirInputAndWeight) {
  for (const char* kind : {"linear", "conv2d", "depthwise_conv2d", "conv_transpose2d"}) {
    EXPECT_THAT(saved(kind).inputs, ElementsAre(0)) << kind;
    EXPECT_THAT(saved(kind).parameters, ElementsAre(0)) << kind;
    EXPECT_TRUE(saved(kind).input_gradient_needs_only_parameters) << kind;
  }
  EXPECT_THAT(saved("batch_norm").inputs, ElementsAre(0));
  EXPECT_EQ(saved("batch_norm").extra_reals_per_micro_batch, 8);
  EXPECT_FALSE(saved("batch_norm").input_gradient_needs_only_parameters);
  EXPECT_THAT(saved("layer_norm").inputs, ElementsAre(0));
  EXPECT_EQ(saved("layer_norm").extra_reals_per_sample, 6);  // mean and deviation of three rows
}

TEST(SavedOf, KindsThatReadTheirOutput) {
  for (const char* kind : {"relu", "tanh", "softmax"}) {
    EXPECT_THAT(saved(kind).inputs, IsEmpty()) << kind;
    EXPECT_THAT(saved(kind).outputs, ElementsAre(0)) << kind;
  }
}

TEST(SavedOf, KindsThatReadTheirInputs) {
  for (const char* kind : {"gelu", "attention", "embedding"}) EXPECT_THAT(saved(kind).inputs, ElementsAre(0)) << kind;
  for (const char* kind : {"multiply", "batch_matmul", "cross_entropy", "mean_squared_error"}) {
    EXPECT_THAT(saved(kind).inputs, ElementsAre(0, 1)) << kind;
  }
  EXPECT_EQ(saved("attention").extra_reals_per_sample, 10);  // one number for each of 5 positions and 2 heads
}

TEST(SavedOf, KindsThatKeepNoTensor) {
  for (const char* kind : {"add", "concat", "select", "segment_embedding", "reshape", "flatten", "transpose",
                           "avg_pool", "max_pool", "global_average_pool", "dropout", "position_embedding"}) {
    EXPECT_THAT(saved(kind).inputs, IsEmpty()) << kind;
    EXPECT_THAT(saved(kind).outputs, IsEmpty()) << kind;
  }
  EXPECT_EQ(saved("max_pool").extra_reals_per_sample, 2 * 4 * 4);  // where each maximum was
  EXPECT_EQ(saved("avg_pool").extra_reals_per_sample, 0);
}

TEST(SavedOf, Sequences) {
  EXPECT_THAT(saved("additive_attention").inputs, ElementsAre(0, 1, 2));
  EXPECT_EQ(saved("additive_attention").extra_reals_per_sample, 5 * 7);  // the weight of each pair
  EXPECT_THAT(saved("lstm").parameters, ElementsAre(0, 1));
  EXPECT_EQ(saved("lstm").extra_reals_per_sample, 5 * 5 * 6);  // four gates and the cell of 5 positions and 6 units
  EXPECT_THAT(saved("lstm", 1).parameters, ElementsAre(0, 1, 4, 5));
  EXPECT_EQ(saved("lstm", 1).extra_reals_per_sample, 2 * 5 * 5 * 3);
}

TEST(SavedOf, PositionsExist) {
  for (const test::Sample& sample : test::samples()) {
    const OperandShapes shapes = test::operand_shapes(sample);
    const Saved kept = op_schema(sample.kind).saved(sample.attributes, shapes);
    for (const int i : kept.inputs) EXPECT_LT(static_cast<std::size_t>(i), shapes.inputs.size()) << sample.kind;
    for (const int i : kept.outputs) EXPECT_LT(static_cast<std::size_t>(i), shapes.outputs.size()) << sample.kind;
    for (const int i : kept.parameters) EXPECT_LT(static_cast<std::size_t>(i), shapes.parameters.size()) << sample.kind;
  }
}

}  // namespace
}  // namespace millrace
