// The table of operator cases.
#include "tests/kernels/op_cases.h"

#include <ostream>

namespace millrace::kernels::testing {
namespace {

using List = std::vector<std::int64_t>;

OpCaseInput real(Dims dims) { return {std::move(dims), 0, false}; }
OpCaseInput tokens(Dims dims, std::int64_t bound) { return {std::move(dims), bound, false}; }
OpCaseInput labels(Dims dims, std::int64_t bound) { return {std::move(dims), bound, true}; }
OpCaseInput targets(Dims dims) { return {std::move(dims), 0, true}; }

Attributes window(List kernel, List stride, List padding) {
  return {{"kernel", std::move(kernel)}, {"stride", std::move(stride)}, {"padding", std::move(padding)}};
}

Attributes convolution(std::int64_t out, List kernel, List stride, List padding, bool bias) {
  Attributes attributes = window(std::move(kernel), std::move(stride), std::move(padding));
  attributes.set("out_channels", out);
  attributes.set("bias", bias);
  return attributes;
}

Attributes linear(std::int64_t out, bool bias) { return {{"out_features", out}, {"bias", bias}}; }
Attributes gelu(std::string approximate) { return {{"approximate", std::move(approximate)}}; }
Attributes dims(List list) { return {{"dims", std::move(list)}}; }
Attributes permutation(List list) { return {{"permutation", std::move(list)}}; }
Attributes select(std::int64_t axis, std::int64_t index) { return {{"axis", axis}, {"index", index}}; }
Attributes attention(std::int64_t heads, bool causal) { return {{"heads", heads}, {"causal", causal}}; }

std::vector<OpCase> make_cases() {
  std::vector<OpCase> cases{
      {"linear", "linear", linear(5, true), {real({3})}, 4, 4},
      {"linear_no_bias", "linear", linear(4, false), {real({7})}, 3, 3},
      {"linear_one_row", "linear", linear(18, true), {real({33})}, 1, 1},
      {"linear_positions", "linear", linear(6, true), {real({5, 4})}, 2, 2},
      {"linear_matrices", "linear", linear(3, true), {real({2, 3, 4})}, 2, 1},
      {"linear_wide", "linear", linear(530, true), {real({3})}, 2, 2},
      {"linear_single", "linear", linear(1, true), {real({1})}, 5, 5},
      {"conv_3x3", "conv2d", convolution(4, {3, 3}, {1, 1}, {1, 1}, true), {real({3, 6, 5})}, 2, 2},
      {"conv_1x1_no_bias", "conv2d", convolution(5, {1, 1}, {1, 1}, {0, 0}, false), {real({4, 3, 3})}, 3, 3},
      {"conv_stride", "conv2d", convolution(3, {3, 3}, {2, 2}, {1, 1}, false), {real({2, 7, 7})}, 2, 2},
      {"conv_1x1_stride", "conv2d", convolution(4, {1, 1}, {2, 2}, {0, 0}, false), {real({3, 5, 5})}, 2, 2},
      {"conv_uneven", "conv2d", convolution(2, {2, 3}, {2, 1}, {0, 2}, true), {real({1, 5, 4})}, 2, 1},
      {"conv_5x5", "conv2d", convolution(2, {5, 5}, {1, 1}, {2, 2}, true), {real({1, 7, 7})}, 1, 1},
      {"conv_16_channels", "conv2d", convolution(16, {3, 3}, {1, 1}, {1, 1}, false), {real({16, 4, 4})}, 2, 2},
      {"batch_norm_image", "batch_norm", {}, {real({3, 4, 2})}, 4, 4},
      {"batch_norm_16_channels", "batch_norm", {}, {real({16, 3, 3})}, 3, 3},
      {"batch_norm_vector", "batch_norm", {{"epsilon", 1e-3}}, {real({5})}, 6, 6},
      {"batch_norm_padding_rows", "batch_norm", {}, {real({2, 3, 3})}, 5, 3},
      {"batch_norm_one_valid", "batch_norm", {{"epsilon", 0.1}}, {real({3, 2, 2})}, 3, 1},
      {"batch_norm_none_valid", "batch_norm", {}, {real({3, 2, 2})}, 2, 0},
      {"layer_norm", "layer_norm", {}, {real({5})}, 3, 3},
      {"layer_norm_positions", "layer_norm", {{"epsilon", 1e-3}}, {real({4, 18})}, 2, 2},
      {"layer_norm_long", "layer_norm", {}, {real({70, 33})}, 2, 2},
      {"relu", "relu", {}, {real({3, 5})}, 3, 3},
      {"relu_image", "relu", {}, {real({2, 4, 5})}, 2, 1},
      {"tanh", "tanh", {}, {real({17})}, 3, 3},
      {"gelu_erf", "gelu", gelu("erf"), {real({17})}, 3, 3},
      {"gelu_tanh", "gelu", gelu("tanh"), {real({17})}, 3, 3},
      {"max_pool", "max_pool", window({2, 2}, {2, 2}, {0, 0}), {real({3, 4, 6})}, 2, 2},
      {"max_pool_overlapping", "max_pool", window({3, 3}, {2, 2}, {1, 1}), {real({2, 7, 6})}, 2, 2},
      {"max_pool_uneven", "max_pool", window({2, 3}, {1, 2}, {0, 1}), {real({1, 4, 5})}, 3, 2},
      {"avg_pool", "avg_pool", window({2, 2}, {2, 2}, {0, 0}), {real({3, 4, 6})}, 2, 2},
      {"avg_pool_padding", "avg_pool", window({3, 3}, {2, 2}, {1, 1}), {real({2, 5, 6})}, 2, 2},
      {"global_average_pool", "global_average_pool", {}, {real({5, 3, 7})}, 2, 2},
      {"add", "add", {}, {real({3, 4}), real({3, 4})}, 3, 3},
      {"multiply", "multiply", {}, {real({3, 4}), real({3, 4})}, 3, 3},
      {"concat_first",
       "concat",
       {{"axis", std::int64_t{0}}},
       {real({2, 3, 2}), real({1, 3, 2}), real({3, 3, 2})},
       2,
       2},
      {"concat_last", "concat", {{"axis", std::int64_t{1}}}, {real({3, 2}), real({3, 4})}, 3, 3},
      {"select_first", "select", select(0, 0), {real({4, 5})}, 3, 3},
      {"select_middle", "select", select(1, 2), {real({2, 3, 4})}, 2, 1},
      {"reshape", "reshape", dims({4, -1}), {real({2, 6})}, 2, 2},
      {"flatten", "flatten", {}, {real({2, 3, 4})}, 2, 2},
      {"transpose", "transpose", permutation({1, 0}), {real({3, 5})}, 2, 2},
      {"transpose_three", "transpose", permutation({1, 2, 0}), {real({2, 3, 4})}, 2, 2},
      {"batch_matmul", "batch_matmul", {}, {real({2, 3, 4}), real({2, 4, 5})}, 2, 2},
      {"batch_matmul_transposed", "batch_matmul", {{"transpose_b", true}}, {real({3, 18}), real({5, 18})}, 3, 3},
      {"softmax", "softmax", {}, {real({7})}, 3, 3},
      {"softmax_positions", "softmax", {}, {real({3, 18})}, 2, 2},
      {"attention_causal", "attention", attention(2, true), {real({5, 12})}, 2, 2},
      {"attention_whole", "attention", attention(3, false), {real({4, 27})}, 2, 2},
      {"attention_one_position", "attention", attention(1, true), {real({1, 9})}, 2, 1},
      {"attention_long", "attention", attention(1, true), {real({19, 6})}, 1, 1},
      {"embedding", "embedding", {{"vocabulary", std::int64_t{6}}, {"width", std::int64_t{5}}}, {tokens({4}, 6)}, 3, 3},
      {"embedding_scalar",
       "embedding",
       {{"vocabulary", std::int64_t{3}}, {"width", std::int64_t{2}}},
       {tokens({}, 3)},
       5,
       4},
      {"position_embedding", "position_embedding", {}, {real({4, 3})}, 3, 3},
      {"segment_embedding", "segment_embedding", {}, {real({4, 3})}, 3, 3},
      {"segment_embedding_uneven", "segment_embedding", {{"segments", std::int64_t{3}}}, {real({5, 2})}, 2, 2},
      {"dropout", "dropout", {{"probability", 0.4}}, {real({6, 5})}, 3, 3},
      {"dropout_nothing", "dropout", {{"probability", 0.0}}, {real({5})}, 2, 2},
      {"cross_entropy", "cross_entropy", {}, {real({10}), labels({}, 10)}, 4, 4},
      {"cross_entropy_positions", "cross_entropy", {}, {real({3, 18}), labels({3}, 18)}, 2, 2},
      {"cross_entropy_padding_rows", "cross_entropy", {}, {real({5}), labels({}, 5)}, 4, 3},
      {"mean_squared_error", "mean_squared_error", {}, {real({3, 6}), targets({3, 6})}, 3, 3},
      {"mean_squared_error_activations", "mean_squared_error", {}, {real({17}), real({17})}, 2, 2},
  };
  // Evaluation takes other paths in these.
  for (const char* name : {"batch_norm_image", "batch_norm_vector", "dropout", "max_pool", "layer_norm",
                           "attention_causal", "linear", "conv_3x3"}) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (cases[i].name != name) continue;
      OpCase evaluated = cases[i];
      evaluated.name += "_evaluated";
      evaluated.training = false;
      cases.push_back(std::move(evaluated));
      break;
    }
  }
  return cases;
}

}  // namespace

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> cases = make_cases();
  return cases;
}

std::ostream& operator<<(std::ostream& out, const OpCase& op_case) { return out << op_case.name; }

}  // namespace millrace::kernels::testing
