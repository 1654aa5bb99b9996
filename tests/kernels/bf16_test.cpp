// Training in bf16 by the reference kernels: roundings case by case, every operator kind, cuts and memory.
#include <cmath>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>

#include "kernels/arena.h"
#include "kernels/bf16/loops.h"
#include "kernels/reference/reference_device.h"
#include "tests/kernels/op_cases.h"
#include "tests/kernels/small_networks.h"
#include "tests/kernels/typed_memory.h"

namespace millrace::kernels::testing {
namespace {

using Limits = std::numeric_limits<float>;

float rounded(float value) { return from_bf16(to_bf16(value)); }
Values rounded(Values lists) {
  for (std::vector<double>& list : lists) {
    for (double& value : list) value = rounded(static_cast<float>(value));
  }
  return lists;
}

TEST(Bf16, RoundsToTheNearest) {
  EXPECT_EQ(to_bf16(1.0F), 0x3F80);
  EXPECT_EQ(to_bf16(-2.0F), 0xC000);
  EXPECT_EQ(rounded(1.0F + 0x1p-9F), 1.0F);
  EXPECT_EQ(rounded(1.0F + 0x1.8p-8F), 1.0F + 0x1p-7F);
  EXPECT_EQ(rounded(-1.0F - 0x1.8p-8F), -1.0F - 0x1p-7F);
}

TEST(Bf16, TiesGoToTheEven) {
  EXPECT_EQ(rounded(1.0F + 0x1p-8F), 1.0F);
  EXPECT_EQ(rounded(1.0F + 0x1p-8F + 0x1p-23F), 1.0F + 0x1p-7F);
  EXPECT_EQ(rounded(1.0F + 0x1p-7F + 0x1p-8F), 1.0F + 0x1p-6F);
  EXPECT_EQ(rounded(2.0F - 0x1p-8F), 2.0F);
}

TEST(Bf16, KeepsZerosInfinitiesAndNan) {
  EXPECT_EQ(to_bf16(0.0F), 0x0000);
  EXPECT_EQ(to_bf16(-0.0F), 0x8000);
  EXPECT_EQ(rounded(Limits::infinity()), Limits::infinity());
  EXPECT_EQ(rounded(-Limits::infinity()), -Limits::infinity());
  EXPECT_TRUE(std::isnan(rounded(Limits::quiet_NaN())));
  for (const std::uint32_t bits : {0x7F800001U, 0xFF800001U, 0x7FFFFFFFU, 0xFFFFFFFFU, 0x7F80FFFFU}) {
    EXPECT_TRUE(std::isnan(rounded(std::bit_cast<float>(bits)))) << bits;
  }
}

TEST(Bf16, RoundsAtBothEndsOfTheRange) {
  EXPECT_EQ(rounded(Limits::max()), Limits::infinity());
  EXPECT_EQ(rounded(0x1.FEp127F), 0x1.FEp127F);
  EXPECT_EQ(rounded(Limits::denorm_min()), 0.0F);
  EXPECT_EQ(rounded(0x1p-133F), 0x1p-133F);  // its smallest
  EXPECT_EQ(rounded(0x1p-134F), 0.0F);       // a tie
  EXPECT_EQ(rounded(0x1.8p-133F), 0x1p-132F);
  EXPECT_EQ(rounded(0x1.FFFFFFp-127F), 0x1p-126F);  // becomes normal
}

TEST(Bf16, LoopsAreTheirElements) {
  std::vector<float> numbers;
  for (int i = 0; i < 1000; ++i) numbers.push_back(std::ldexp(static_cast<float>(i * 7919 % 4001 - 2000), i % 90 - 45));
  numbers.push_back(Limits::quiet_NaN());
  const auto count = static_cast<std::int64_t>(numbers.size());
  std::vector<Bf16> narrowed(numbers.size()), sums(numbers.size());
  std::vector<float> widened(numbers.size()), back(numbers.size());
  narrow(numbers.data(), narrowed.data(), count);
  widen(narrowed.data(), widened.data(), count);
  round_to_bf16(numbers.data(), back.data(), count);
  sums = narrowed;
  add_bf16(sums.data(), narrowed.data() + 1, count - 1);
  for (std::size_t i = 0; i + 1 < numbers.size(); ++i) {
    EXPECT_EQ(narrowed[i], to_bf16(numbers[i]));
    EXPECT_EQ(widened[i], rounded(numbers[i]));
    EXPECT_EQ(back[i], rounded(numbers[i]));
    if (i + 2 == numbers.size()) continue;  // NaN follows
    EXPECT_EQ(from_bf16(sums[i]), rounded(widened[i] + widened[i + 1]));
  }
  EXPECT_TRUE(std::isnan(widened.back()));
}

class Bf16Op : public ::testing::TestWithParam<OpCase> {};

/// The data as an operator in bf16 sees it.
OpCaseData seen(const OpCase& op_case, OpCaseData data) {
  const bool loss = op_schema(op_case.kind).is_loss;
  const Values labels = data.inputs;
  data.inputs = rounded(data.inputs);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (op_case.inputs[i].label || op_case.inputs[i].indices > 0) data.inputs[i] = labels[i];
  }
  if (op_case.kind == "linear" || op_case.kind == "conv2d") data.parameters[0] = rounded({data.parameters[0]})[0];
  if (!loss) data.output_gradients = rounded(data.output_gradients);
  return data;
}

double largest_relative(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference = std::max(difference, std::abs(a.at(i) - b[i]));
    size = std::max(size, std::abs(b[i]));
  }
  return size > 0 ? difference / size : difference;
}

// Operators compute in fp32 on what they are given: rounded once, their results are those of fp32. Backward passes
// that read an output back read it rounded, so their results are near.
TEST_P(Bf16Op, IsFp32RoundedOnce) {
  const OpCase& op_case = GetParam();
  const OpCaseStage made = make_op_case_stage(op_case);
  const OpCaseData data = op_case_data(op_case, made.graph, made.op);
  const auto device = make_reference_device();
  const OpCaseResult expected = run_op_case(op_case, seen(op_case, data), *device, Precision::fp32);
  const Operator& op = made.graph.op(made.op);
  const bool exact = op.schema->saved(op.attributes, made.graph.shapes(made.op)).outputs.empty();
  for (const BackwardCall backward : {BackwardCall::whole, BackwardCall::split}) {
    const OpCaseResult result = run_op_case(op_case, data, *device, Precision::bf16, backward);
    EXPECT_EQ(result.outputs, op.schema->is_loss ? expected.outputs : rounded(expected.outputs));
    EXPECT_EQ(result.buffer_gradients, expected.buffer_gradients);
    ASSERT_EQ(result.input_gradients.size(), expected.input_gradients.size());
    ASSERT_EQ(result.parameter_gradients.size(), expected.parameter_gradients.size());
    if (exact) {
      EXPECT_EQ(result.input_gradients, rounded(expected.input_gradients));
      EXPECT_EQ(result.parameter_gradients, expected.parameter_gradients);
    }
    for (std::size_t i = 0; i < expected.input_gradients.size(); ++i) {
      EXPECT_LT(largest_relative(result.input_gradients[i], expected.input_gradients[i]), 0x1p-6) << i;
    }
    if (!op_case.training) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Bf16Op, ::testing::ValuesIn(op_cases()),
                         [](const auto& info) { return info.param.name; });

TEST(Bf16Stages, ACutAnywhereGivesTheSameBits) {
  const Graph graph = skip_network(true);
  const auto device = make_reference_device();
  const PipelineRun whole = run_pipeline(graph, {}, *device, Precision::bf16, 4);
  EXPECT_NE(whole.loss, run_pipeline(graph, {}, *device, Precision::fp32, 4).loss);
  for (OpId cut = 1; cut < graph.size(); ++cut) {
    const PipelineRun parts = run_pipeline(graph, {cut}, *device, Precision::bf16, 4);
    EXPECT_EQ(whole.loss, parts.loss) << cut;
    EXPECT_EQ(whole.gradients, parts.gradients) << cut;
  }
}

TEST(Bf16Stages, TwoCutsAnywhereGiveTheSameBits) {
  const Graph graph = skip_network(false);
  const auto device = make_reference_device();
  const PipelineRun whole = run_pipeline(graph, {}, *device, Precision::bf16, 4);
  for (OpId first = 1; first < graph.size(); ++first) {
    for (OpId second = first + 1; second < graph.size(); ++second) {
      const PipelineRun parts = run_pipeline(graph, {first, second}, *device, Precision::bf16, 4);
      EXPECT_EQ(whole.loss, parts.loss) << first << ", " << second;
      EXPECT_EQ(whole.gradients, parts.gradients) << first << ", " << second;
    }
  }
}

// Tensors between operators halve; losses, labels and what kernels keep beside do not.
TEST(Bf16Stages, SlotsHoldHalfOfTheTensors) {
  const Graph graph = skip_network(true);
  std::vector<OpId> ops(static_cast<std::size_t>(graph.size()));
  std::iota(ops.begin(), ops.end(), 0);
  const StageGraph stage = make_stage_graph(graph, ops);
  CompileOptions options;
  options.rows = 64;  // 6 × 64 elements: whole cache lines in both
  const auto slot = [&](Precision precision) {
    StageParameters parameters(stage, stage.parameters, precision);
    EXPECT_EQ(parameters.value_bytes(), StageParameters(stage, stage.parameters, Precision::fp32).value_bytes());
    return make_reference_device()->compile(stage, parameters, options)->bytes().per_slot;
  };
  const std::int64_t narrow = slot(Precision::bf16), whole = slot(Precision::fp32);
  const std::int64_t tensors = 2 * (whole - narrow);
  EXPECT_EQ(tensors % (64 * 6 * 4), 0);
  // Beside them: ids of the rows, labels, two outputs of the loss and its weights, mean and 1/σ of the norm.
  EXPECT_EQ(whole - tensors, aligned(64 * 8) + aligned(64 * 4) * 4 + aligned(64 * 2 * 4));
}

}  // namespace
}  // namespace millrace::kernels::testing
