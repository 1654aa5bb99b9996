// Every kind refuses shapes and attributes that do not fit, naming operator, operand, found and allowed.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/errors.h"
#include "graph/graph_builder.h"

namespace millrace {
namespace {

using List = std::vector<std::int64_t>;

TensorShape real(Dims dims) { return {.dims = std::move(dims)}; }
TensorShape index(Dims dims) { return {.dims = std::move(dims), .element = ElementType::index}; }

struct Refused {
  std::string kind;
  Attributes attributes;
  std::vector<TensorShape> inputs;  ///< the second input of a loss is a label
  std::string message;              ///< after "operator 'op' (KIND): "
};

class EveryRefusal : public testing::TestWithParam<Refused> {};

TEST_P(EveryRefusal, NamesOperandFoundAndAllowed) {
  const Refused& row = GetParam();
  GraphBuilder builder("g");
  OpSpec spec{.name = "op", .kind = row.kind, .inputs = {}, .attributes = row.attributes};
  for (std::size_t i = 0; i < row.inputs.size(); ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    const bool label = i == 1 && op_schema(row.kind).is_loss;
    spec.inputs.push_back(label ? builder.label(name, row.inputs[i]) : builder.input(name, row.inputs[i]));
  }
  try {
    builder.add(spec);
    FAIL() << "accepted";
  } catch (const InvalidInput& error) {
    EXPECT_EQ(std::string(error.what()), "operator 'op' (" + row.kind + "): " + row.message);
  }
}

Attributes window(List kernel, List stride, List padding) {
  return {{"kernel", std::move(kernel)}, {"stride", std::move(stride)}, {"padding", std::move(padding)}};
}

const Attributes kConv{{"out_channels", 2}, {"kernel", List{3, 3}}};

const std::vector<Refused> kRefused{
    {"linear",
     {{"out_features", 3}},
     {real({})},
     "input 0: found [], allowed: at least one dimension beside the batch axis"},
    {"linear", {{"out_features", 0}}, {real({4})}, "attribute 'out_features': found 0, allowed: integer, at least 1"},
    {"linear", {}, {real({4})}, "attribute 'out_features' must be given"},
    {"linear", {{"out_features", 2.5}}, {real({4})}, "attribute 'out_features': found 2.5 (real), allowed: integer"},
    {"linear",
     {{"out_features", 3}, {"bias", 1}},
     {real({4})},
     "attribute 'bias': found 1 (integer), allowed: boolean"},
    {"linear", {{"out_features", 3}}, {index({4})}, "input 0: found [4] of indices, allowed: real elements"},
    {"linear",
     {{"out_feature", 3}},
     {real({4})},
     "unknown attribute 'out_feature' (did you mean 'out_features'?); valid: out_features, bias"},
    {"conv2d", kConv, {real({784})}, "input 0: found [784], allowed: [channels, height, width]"},
    {"conv2d",
     kConv,
     {real({1, 2, 9})},
     "input 0: found [1, 2, 9], allowed: height and width with padding at least the kernel [3, 3] (padding [0, 0])"},
    {"conv2d",
     {{"out_channels", 2}, {"kernel", List{3}}},
     {real({1, 9, 9})},
     "attribute 'kernel': found [3], allowed: two integers, at least 1"},
    {"depthwise_conv2d",
     {{"kernel", List{3, 3}}},
     {real({4})},
     "input 0: found [4], allowed: [channels, height, width]"},
    {"conv_transpose2d",
     {{"out_channels", 2}, {"kernel", List{1, 2}}, {"padding", List{1, 0}}},
     {real({1, 2, 2})},
     "attribute 'padding': found [1, 0], allowed: less than what leaves a pixel"},
    {"batch_norm", {}, {real({3, 4})}, "input 0: found [3, 4], allowed: [channels] or [channels, height, width]"},
    {"batch_norm", {{"momentum", 1.5}}, {real({3})}, "attribute 'momentum': found 1.5, allowed: real from 0 to 1"},
    {"layer_norm", {}, {real({})}, "input 0: found [], allowed: at least one dimension beside the batch axis"},
    {"layer_norm", {{"epsilon", 0.0}}, {real({3})}, "attribute 'epsilon': found 0, allowed: real above 0"},
    {"relu", {}, {index({3})}, "input 0: found [3] of indices, allowed: real elements"},
    {"relu", {{"slope", 0.1}}, {real({3})}, "unknown attribute 'slope'; this kind has none"},
    {"relu", {}, {real({3}), real({3})}, "found 2 inputs, allowed: 1"},
    {"tanh", {}, {index({3})}, "input 0: found [3] of indices, allowed: real elements"},
    {"gelu",
     {{"approximate", std::string("none")}},
     {real({3})},
     "attribute 'approximate': found 'none', allowed: erf, tanh"},
    {"max_pool",
     window({2, 2}, {2, 2}, {2, 0}),
     {real({1, 4, 4})},
     "attribute 'padding': found [2, 0], allowed: less than the kernel [2, 2]"},
    {"avg_pool",
     window({2, 2}, {0, 2}, {0, 0}),
     {real({1, 4, 4})},
     "attribute 'stride': found [0, 2], allowed: two integers, at least 1"},
    {"avg_pool",
     window({5, 2}, {1, 1}, {0, 0}),
     {real({1, 4, 4})},
     "input 0: found [1, 4, 4], allowed: height and width with padding at least the kernel [5, 2] (padding [0, 0])"},
    {"global_average_pool", {}, {real({5})}, "input 0: found [5], allowed: [channels, height, width]"},
    {"add", {}, {real({3}), real({4})}, "input 1: found [4], allowed: [3] as input 0"},
    {"multiply", {}, {real({3}), real({3, 1})}, "input 1: found [3, 1], allowed: [3] as input 0"},
    {"concat",
     {{"axis", 2}},
     {real({3, 4}), real({3, 4})},
     "attribute 'axis': found 2, allowed: an axis of [3, 4], from 0"},
    {"concat", {{"axis", 0}}, {real({3, 4}), real({3, 5})}, "input 1: found [3, 5], allowed: [3, 4] but for axis 0"},
    {"concat", {{"axis", 0}}, {real({3, 4})}, "found 1 inputs, allowed: at least 2"},
    {"select",
     {{"axis", 2}, {"index", 0}},
     {real({3, 4})},
     "attribute 'axis': found 2, allowed: an axis of [3, 4], from 0"},
    {"select", {{"axis", 0}, {"index", 3}}, {real({3, 4})}, "attribute 'index': found 3, allowed: 0 to 2"},
    {"reshape",
     {{"dims", List{-1, 5}}},
     {real({3, 4})},
     "attribute 'dims': found [-1, 5], allowed: dims at least 1, one of them -1 or none, with 12 elements in all"},
    {"reshape",
     {{"dims", List{-1, -1}}},
     {real({3, 4})},
     "attribute 'dims': found [-1, -1], allowed: dims at least 1, one of them -1 or none, with 12 elements in all"},
    {"reshape",
     {{"dims", List{4'000'000'000, 4'000'000'000}}},
     {real({3, 4})},
     "attribute 'dims': found [4000000000, 4000000000], allowed: dims at least 1, one of them -1 or none, with 12 "
     "elements in all"},
    {"flatten", {}, {index({3, 4})}, "input 0: found [3, 4] of indices, allowed: real elements"},
    {"transpose",
     {{"permutation", List{0, 0}}},
     {real({3, 4})},
     "attribute 'permutation': found [0, 0], allowed: each of 0 to 1 once"},
    {"transpose",
     {{"permutation", List{1, -1}}},
     {real({3, 4})},
     "attribute 'permutation': found [1, -1], allowed: each of 0 to 1 once"},
    {"batch_matmul",
     {},
     {real({3}), real({3})},
     "input 0: found [3], allowed: at least two dimensions beside the batch axis"},
    {"batch_matmul",
     {},
     {real({2, 3, 4}), real({2, 5, 4})},
     "input 1: found [2, 5, 4], allowed: leading dimensions of input 0, then its last [2, 3, 4]"},
    {"batch_matmul",
     {{"transpose_b", true}},
     {real({2, 3, 4}), real({1, 5, 4})},
     "input 1: found [1, 5, 4], allowed: leading dimensions and last of input 0 [2, 3, 4]"},
    {"softmax", {}, {real({})}, "input 0: found [], allowed: at least one dimension beside the batch axis"},
    {"attention", {{"heads", 2}}, {real({5, 4})}, "input 0: found [5, 4], allowed: [positions, 3 · width]"},
    {"attention",
     {{"heads", 5}},
     {real({5, 36})},
     "attribute 'heads': found 5, allowed: a divisor of the width 12: 1, 2, 3, 4, 6, 12"},
    {"additive_attention",
     {},
     {real({5, 4}), real({7, 3}), real({7, 6})},
     "input 1: found [7, 3], allowed: [source positions, units] with the units of input 0 [5, 4]"},
    {"additive_attention",
     {},
     {real({5, 4}), real({7, 4}), real({6, 6})},
     "input 2: found [6, 6], allowed: [source positions, width] with the positions of input 1 [7, 4]"},
    {"lstm", {{"hidden", 2}}, {real({5})}, "input 0: found [5], allowed: [positions, features]"},
    {"lstm", {{"hidden", 0}}, {real({5, 2})}, "attribute 'hidden': found 0, allowed: integer, at least 1"},
    {"segment_embedding", {}, {real({5})}, "input 0: found [5], allowed: [positions, width]"},
    {"embedding",
     {{"vocabulary", 5}, {"width", 2}},
     {real({5})},
     "input 0: found [5], allowed: elements that are indices"},
    {"position_embedding", {}, {real({5})}, "input 0: found [5], allowed: [positions, width]"},
    {"dropout", {{"probability", 1}}, {real({5})}, "attribute 'probability': found 1, allowed: real from 0 to below 1"},
    {"cross_entropy",
     {},
     {real({4, 6}), index({6})},
     "input 1: found [6] of indices, allowed: [4] of indices: the logits' dimensions without the last"},
    {"cross_entropy",
     {},
     {real({4, 6}), real({4})},
     "input 1: found [4], allowed: [4] of indices: the logits' dimensions without the last"},
    {"cross_entropy",
     {},
     {real({}), index({})},
     "input 0: found [], allowed: logits with the classes as last dimension"},
    {"mean_squared_error", {}, {real({4}), real({5})}, "input 1: found [5], allowed: [4] as input 0"},
};

INSTANTIATE_TEST_SUITE_P(Rows, EveryRefusal, testing::ValuesIn(kRefused),
                         [](const testing::TestParamInfo<Refused>& row) {
                           return row.param.kind + "_" + std::to_string(row.index);
                         });

TEST(Refusals, HaveARowForEveryKind) {
  for (const OpSchema* schema : op_schemas()) {
    if (schema->explicit_figures) continue;  // figures_test.cpp
    EXPECT_TRUE(std::any_of(kRefused.begin(), kRefused.end(), [&](const Refused& row) {
      return row.kind == schema->name;
    })) << schema->name;
  }
}

}  // namespace
}  // namespace millrace
