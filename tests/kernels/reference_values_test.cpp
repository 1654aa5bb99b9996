// Values of the reference kernels that arithmetic gives: what the other devices are then compared with.
#include <cmath>
#include <numbers>

#include <gmock/gmock.h>

#include "base/errors.h"
#include "base/hash.h"
#include "base/random.h"
#include "kernels/reference/reference_device.h"
#include "tests/kernels/op_cases.h"

namespace millrace::kernels::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using ::testing::ThrowsMessage;
using List = std::vector<double>;
using Integers = std::vector<std::int64_t>;

/// One operator and the numbers it is given.
struct Call {
  OpCase op_case;
  OpCaseData data{};
};

OpCaseResult run(const Call& call) {
  OpCaseData data = call.data;
  if (data.output_gradients.empty()) {
    const OpCaseStage made = make_op_case_stage(call.op_case);
    data.output_gradients = op_case_data(call.op_case, made.graph, made.op).output_gradients;
  }
  return run_op_case(call.op_case, data, *make_reference_device(), Precision::fp64);
}

Call call(std::string kind, Attributes attributes, std::vector<OpCaseInput> operands, std::int64_t rows, Values inputs,
          Values parameters = {}) {
  OpCase op_case{"values", std::move(kind), std::move(attributes), std::move(operands), rows, rows};
  return {std::move(op_case), {std::move(inputs), std::move(parameters), {}, {}}};
}

auto near(const List& values) { return Pointwise(DoubleNear(1e-14), values); }

TEST(ReferenceValues, Linear) {
  const Call c =
      call("linear", {{"out_features", std::int64_t{2}}}, {{{2}}}, 2, {{1, 2, 3, 4}}, {{1, 2, 3, 4}, {10, 20}});
  EXPECT_THAT(run(c).outputs[0], ElementsAre(15, 31, 21, 45));
}

TEST(ReferenceValues, ConvolutionIsTheSumOverItsWindow) {
  for (const OpCase& op_case : op_cases()) {
    if (op_case.kind != "conv2d") continue;
    const OpCaseStage made = make_op_case_stage(op_case);
    const OpCaseData data = op_case_data(op_case, made.graph, made.op);
    const Operator& op = made.graph.op(made.op);
    const Dims& in = made.graph.tensor(op.inputs[0]).shape.dims;
    const Dims& out = made.graph.tensor(op.outputs[0]).shape.dims;
    const auto& kernel = op.attributes.integers("kernel");
    const auto& stride = op.attributes.integers("stride");
    const auto& padding = op.attributes.integers("padding");
    List expected;
    for (std::int64_t n = 0; n < op_case.rows; ++n) {
      for (std::int64_t o = 0; o < out[0]; ++o) {
        for (std::int64_t oh = 0; oh < out[1]; ++oh) {
          for (std::int64_t ow = 0; ow < out[2]; ++ow) {
            double sum = data.parameters.size() > 1 ? data.parameters[1][static_cast<std::size_t>(o)] : 0;
            for (std::int64_t c = 0; c < in[0]; ++c) {
              for (std::int64_t i = 0; i < kernel[0]; ++i) {
                for (std::int64_t j = 0; j < kernel[1]; ++j) {
                  const std::int64_t h = oh * stride[0] + i - padding[0];
                  const std::int64_t w = ow * stride[1] + j - padding[1];
                  if (h < 0 || h >= in[1] || w < 0 || w >= in[2]) continue;
                  sum +=
                      data.inputs[0][static_cast<std::size_t>(((n * in[0] + c) * in[1] + h) * in[2] + w)] *
                      data.parameters[0][static_cast<std::size_t>(((o * in[0] + c) * kernel[0] + i) * kernel[1] + j)];
                }
              }
            }
            expected.push_back(sum);
          }
        }
      }
    }
    const auto device = make_reference_device();
    EXPECT_THAT(run_op_case(op_case, data, *device, Precision::fp64).outputs[0], Pointwise(DoubleNear(1e-12), expected))
        << op_case;
  }
}

// Channel of 1 and 3: mean 2, variance 1 biased and 2 unbiased; the third row is padding.
TEST(ReferenceValues, BatchNormOverValidRows) {
  Call c = call("batch_norm", {{"epsilon", 0.25}}, {{{1}}}, 3, {{1, 3, 10}}, {{2}, {5}});
  c.op_case.valid_rows = 2;
  c.data.buffers = {{100}, {7}};
  c.data.output_gradients = {{1, 0, 0}};
  const OpCaseResult result = run(c);
  const double scale = 2 / std::sqrt(1.25);
  EXPECT_THAT(result.outputs[0], near({5 - scale, 5 + scale, 5 + 8 * scale}));
  // valid rows · row weight 1/8 = 1/4 of the statistics.
  EXPECT_THAT(result.buffer_gradients[0], ElementsAre(0.5));
  EXPECT_THAT(result.buffer_gradients[1], ElementsAre(0.5));
  EXPECT_EQ(result.input_gradients[0][2], 0);
}

TEST(ReferenceValues, BatchNormWithoutStatisticsUsesTheRunningOnes) {
  Call c = call("batch_norm", {{"epsilon", 1.0}}, {{{1}}}, 2, {{1, 3}}, {{2}, {5}});
  c.data.buffers = {{1}, {3}};
  c.data.output_gradients = {{0, 0}};
  for (const bool training : {true, false}) {
    c.op_case.training = training;
    c.op_case.valid_rows = training ? 0 : 2;
    const OpCaseResult result = run(c);
    EXPECT_THAT(result.outputs[0], near({5, 7}));
    if (training) {
      EXPECT_THAT(result.buffer_gradients, ElementsAre(ElementsAre(0), ElementsAre(0)));
    }
  }
}

TEST(ReferenceValues, BatchNormOfOneValueDepositsTheBiasedVariance) {
  Call c = call("batch_norm", {}, {{{1}}}, 1, {{4}}, {{2}, {5}});
  c.data.buffers = {{0}, {1}};
  const OpCaseResult result = run(c);
  EXPECT_THAT(result.outputs[0], ElementsAre(5));
  EXPECT_THAT(result.buffer_gradients, ElementsAre(ElementsAre(0.5), ElementsAre(0)));
}

TEST(ReferenceValues, LayerNorm) {
  const Call c = call("layer_norm", {{"epsilon", 0.25}}, {{{2}}}, 1, {{1, 3}}, {{1, 2}, {10, 20}});
  EXPECT_THAT(run(c).outputs[0], near({10 - 1 / std::sqrt(1.25), 20 + 2 / std::sqrt(1.25)}));
}

TEST(ReferenceValues, ActivationsAndSoftmax) {
  EXPECT_THAT(run(call("relu", {}, {{{3}}}, 1, {{-1, 0, 2}})).outputs[0], ElementsAre(0, 0, 2));
  EXPECT_THAT(run(call("gelu", {{"approximate", std::string("erf")}}, {{{2}}}, 1, {{1, -1}})).outputs[0],
              near({0.8413447460685429, -0.15865525393145707}));
  EXPECT_THAT(run(call("gelu", {{"approximate", std::string("tanh")}}, {{{2}}}, 1, {{1, -1}})).outputs[0],
              near({0.8411919906082768, -0.15880800939172324}));
  EXPECT_THAT(run(call("softmax", {}, {{{3}}}, 1, {{1000, 1000 + std::numbers::ln2, 1000 + std::log(3)}})).outputs[0],
              Pointwise(DoubleNear(1e-12), List{1.0 / 6, 2.0 / 6, 3.0 / 6}));
}

Attributes window(Integers kernel, Integers stride, Integers padding) {
  return {{"kernel", std::move(kernel)}, {"stride", std::move(stride)}, {"padding", std::move(padding)}};
}

TEST(ReferenceValues, Pooling) {
  const Values x{{1, 2, 3, 4, 5, 6, 7, 8, -9}};
  const std::vector<OpCaseInput> image{{{1, 3, 3}}};
  EXPECT_THAT(run(call("max_pool", window({2, 2}, {1, 1}, {0, 0}), image, 1, x)).outputs[0], ElementsAre(5, 6, 8, 8));
  EXPECT_THAT(run(call("avg_pool", window({2, 2}, {1, 1}, {0, 0}), image, 1, x)).outputs[0], ElementsAre(3, 4, 6, 2.5));
  // Windows of padding count in full; negative maxima are not covered by zeros.
  EXPECT_THAT(run(call("avg_pool", window({2, 2}, {2, 2}, {1, 1}), image, 1, x)).outputs[0],
              ElementsAre(0.25, 1.25, 2.75, 2.5));
  EXPECT_THAT(run(call("max_pool", window({3, 3}, {3, 3}, {1, 1}), {{{1, 1, 1}}}, 1, {{-4}})).outputs[0],
              ElementsAre(-4));
  EXPECT_THAT(run(call("global_average_pool", {}, image, 1, x)).outputs[0], ElementsAre(3));
}

TEST(ReferenceValues, MaximumGradientGoesToTheFirstOfEquals) {
  Call c = call("max_pool", window({1, 3}, {1, 3}, {0, 0}), {{{1, 1, 3}}}, 1, {{2, 7, 7}});
  c.data.output_gradients = {{5}};
  EXPECT_THAT(run(c).input_gradients[0], ElementsAre(0, 5, 0));
}

TEST(ReferenceValues, Movement) {
  const OpCaseInput matrix{{2, 3}};
  const List x{1, 2, 3, 4, 5, 6};
  EXPECT_THAT(run(call("transpose", {{"permutation", Integers{1, 0}}}, {matrix}, 1, {x})).outputs[0],
              ElementsAre(1, 4, 2, 5, 3, 6));
  // [2, 1, 3] to [3, 2, 1]: output axis i is input axis permutation[i].
  EXPECT_THAT(run(call("transpose", {{"permutation", Integers{2, 0, 1}}}, {{{2, 1, 3}}}, 1, {x})).outputs[0],
              ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(run(call("reshape", {{"dims", Integers{3, -1}}}, {matrix}, 1, {x})).outputs[0],
              ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(
      run(call("concat", {{"axis", std::int64_t{1}}}, {{{2, 1}}, {{2, 2}}}, 1, {{1, 2}, {3, 4, 5, 6}})).outputs[0],
      ElementsAre(1, 3, 4, 2, 5, 6));
  EXPECT_THAT(run(call("concat", {{"axis", std::int64_t{0}}}, {{{1}}, {{2}}}, 2, {{1, 2}, {3, 4, 5, 6}})).outputs[0],
              ElementsAre(1, 3, 4, 2, 5, 6));
}

TEST(ReferenceValues, ElementwiseAndMatrices) {
  EXPECT_THAT(run(call("add", {}, {{{2}}, {{2}}}, 1, {{1, 2}, {3, 5}})).outputs[0], ElementsAre(4, 7));
  EXPECT_THAT(run(call("multiply", {}, {{{2}}, {{2}}}, 1, {{1, 2}, {3, 5}})).outputs[0], ElementsAre(3, 10));
  const Values factors{{1, 2, 3, 4}, {5, 6, 7, 8}};
  EXPECT_THAT(run(call("batch_matmul", {}, {{{2, 2}}, {{2, 2}}}, 1, factors)).outputs[0], ElementsAre(19, 22, 43, 50));
  EXPECT_THAT(run(call("batch_matmul", {{"transpose_b", true}}, {{{2, 2}}, {{2, 2}}}, 1, factors)).outputs[0],
              ElementsAre(17, 23, 39, 53));
}

// One head of width 1 with the queries ln 2 and keys 0, 1: weights 1:2 at the second position.
TEST(ReferenceValues, AttentionWeighsValues) {
  const double q = std::numbers::ln2;
  const Call causal = call("attention", {{"heads", std::int64_t{1}}}, {{{2, 3}}}, 1, {{q, 0, 10, q, 1, 40}});
  EXPECT_THAT(run(causal).outputs[0], near({10, 30}));
  const Call whole =
      call("attention", {{"heads", std::int64_t{1}}, {"causal", false}}, {{{2, 3}}}, 1, {{q, 0, 10, q, 1, 40}});
  EXPECT_THAT(run(whole).outputs[0], near({30, 30}));
}

// Features are (head, query-key-value, d): with zero queries the values are averaged.
TEST(ReferenceValues, AttentionHeadsLieOneAfterTheOther) {
  const List first{0, 0, 5, 5, 1, 2, 0, 0, 5, 5, 3, 4};
  const List second{0, 0, 5, 5, 3, 6, 0, 0, 5, 5, 5, 8};
  List qkv(first);
  qkv.insert(qkv.end(), second.begin(), second.end());
  const Call c = call("attention", {{"heads", std::int64_t{2}}}, {{{2, 12}}}, 1, {qkv});
  EXPECT_THAT(run(c).outputs[0], near({1, 2, 3, 4, 2, 4, 4, 6}));
}

TEST(ReferenceValues, Embeddings) {
  const Attributes table{{"vocabulary", std::int64_t{3}}, {"width", std::int64_t{2}}};
  Call c = call("embedding", table, {{{2}, 3}}, 1, {{2, 2}}, {{1, 2, 3, 4, 5, 6}});
  c.data.output_gradients = {{1, 10, 100, 1000}};
  EXPECT_THAT(run(c).outputs[0], ElementsAre(5, 6, 5, 6));
  EXPECT_THAT(run(c).parameter_gradients[0], ElementsAre(0, 0, 0, 0, 101, 1010));
  const Call position = call("position_embedding", {}, {{{1, 2}}}, 2, {{1, 2, 3, 4}}, {{10, 20}});
  EXPECT_THAT(run(position).outputs[0], ElementsAre(11, 22, 13, 24));
}

TEST(ReferenceValues, DropoutKeepsByTheSampleId) {
  Call c = call("dropout", {{"probability", 0.5}}, {{{4}}}, 2, {{1, 2, 3, 4, 5, 6, 7, 8}});
  const List output = run(c).outputs[0];
  for (std::uint64_t row = 0; row < 2; ++row) {
    const Random random(7, hash64("op"), 3, 100 + row);  // what run_op_case passes
    for (std::uint64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(output[row * 4 + i], random.uniform(i) >= 0.5 ? 2 * c.data.inputs[0][row * 4 + i] : 0);
    }
  }
}

TEST(ReferenceValues, CrossEntropyAndAnswersThatAreRight) {
  const double third = std::log(3);
  // Row 0: probabilities 1/4 and 3/4, label 1. Row 1: equal logits, where the lowest index is the answer.
  Call c = call("cross_entropy", {}, {{{2}}, {{}, 2, true}}, 2, {{0, third, 8, 8}, {1, 1}});
  c.data.output_gradients = {{0.5, 0.25}};
  const OpCaseResult result = run(c);
  EXPECT_THAT(result.outputs[0], near({std::log(4.0 / 3), std::numbers::ln2}));
  EXPECT_THAT(result.outputs[1], ElementsAre(1, 0));
  EXPECT_THAT(result.input_gradients[0], near({0.125, -0.125, 0.125, -0.125}));
  const Call positions = call("cross_entropy", {}, {{{2, 2}}, {{2}, 2, true}}, 1, {{0, third, 8, 8}, {1, 0}});
  EXPECT_THAT(run(positions).outputs[0], near({(std::log(4.0 / 3) + std::numbers::ln2) / 2}));
  EXPECT_THAT(run(positions).outputs[1], ElementsAre(1));
}

TEST(ReferenceValues, MeanSquaredError) {
  Call c = call("mean_squared_error", {}, {{{2}}, {{2}, 0, true}}, 2, {{1, 2, 0, 0}, {1, 4, 3, 4}});
  c.data.output_gradients = {{1, 0.5}};
  EXPECT_THAT(run(c).outputs[0], ElementsAre(2, 12.5));
  EXPECT_THAT(run(c).input_gradients[0], ElementsAre(0, -2, -1.5, -2));
}

TEST(ReferenceValues, IndicesOutsideTheirTableAreRefused) {
  const Attributes table{{"vocabulary", std::int64_t{3}}, {"width", std::int64_t{1}}};
  const Call token = call("embedding", table, {{{2}, 3}}, 2, {{0, 1, 2, 3}}, {{1, 2, 3}});
  EXPECT_THAT(
      [&] { run(token); },
      ThrowsMessage<RunFailed>(HasSubstr("operator 'op': row 1 of the micro-batch holds index 3; allowed: 0 to 2")));
  const Call label = call("cross_entropy", {}, {{{2}}, {{}, 2, true}}, 1, {{0, 0}, {-1}});
  EXPECT_THAT([&] { run(label); }, ThrowsMessage<RunFailed>(HasSubstr("holds index -1; allowed: 0 to 1")));
}

}  // namespace
}  // namespace millrace::kernels::testing
