// Every operator case on the oneDNN device against the reference in double precision, and in bf16.
#include <gmock/gmock.h>

#include "kernels/onednn/onednn_device.h"
#include "kernels/reference/reference_device.h"
#include "tests/kernels/onednn/relative_error.h"
#include "tests/kernels/op_cases.h"

namespace millrace::kernels::testing {
namespace {

// Single precision has 6e-8 a rounding; the longest sums of the cases have some hundred terms.
constexpr double kForward = 2e-6;
constexpr double kBackward = 5e-6;
constexpr double kBf16 = 0x1p-9;

class OnednnOp : public ::testing::TestWithParam<OpCase> {};

void expect_near(const Values& values, const Values& expected, double tolerance, const char* what) {
  ASSERT_EQ(values.size(), expected.size()) << what;
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_LT(relative_error(values[i], expected[i]), tolerance) << what << " " << i;
  }
}

void expect_as_reference(const OpCase& op_case, BackwardCall backward) {
  const OpCaseStage made = make_op_case_stage(op_case);
  const OpCaseData data = op_case_data(op_case, made.graph, made.op);
  const auto onednn = make_onednn_device();
  const auto reference = make_reference_device();
  const OpCaseResult result = run_op_case(op_case, data, *onednn, Precision::fp32, backward);
  const OpCaseResult expected = run_op_case(op_case, data, *reference, Precision::fp64, backward);
  expect_near(result.outputs, expected.outputs, kForward, "output");
  expect_near(result.buffer_gradients, expected.buffer_gradients, kForward, "statistic");
  expect_near(result.input_gradients, expected.input_gradients, kBackward, "input gradient");
  expect_near(result.parameter_gradients, expected.parameter_gradients, kBackward, "parameter gradient");
}

TEST_P(OnednnOp, IsAsTheReference) { expect_as_reference(GetParam(), BackwardCall::whole); }

// Both round once what they compute in fp32: an element may lie on the other side of a tie.
TEST_P(OnednnOp, InBf16IsAsTheReference) {
  const OpCase& op_case = GetParam();
  const OpCaseStage made = make_op_case_stage(op_case);
  const OpCaseData data = op_case_data(op_case, made.graph, made.op);
  const OpCaseResult result = run_op_case(op_case, data, *make_onednn_device(), Precision::bf16);
  const OpCaseResult expected = run_op_case(op_case, data, *make_reference_device(), Precision::bf16);
  expect_near(result.outputs, expected.outputs, kBf16, "output");
  expect_near(result.buffer_gradients, expected.buffer_gradients, kForward, "statistic");
  expect_near(result.input_gradients, expected.input_gradients, kBf16, "input gradient");
  expect_near(result.parameter_gradients, expected.parameter_gradients, kBf16, "parameter gradient");
}

TEST_P(OnednnOp, SplitBackwardIsAsTheReference) {
  if (GetParam().training) expect_as_reference(GetParam(), BackwardCall::split);
}

INSTANTIATE_TEST_SUITE_P(Cases, OnednnOp, ::testing::ValuesIn(op_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace millrace::kernels::testing
