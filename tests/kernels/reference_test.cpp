// Every case of every operator kind on the reference device: gradients against finite differences, and which bits
// depend on what.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <set>

#include <gmock/gmock.h>

#include "graph/op_schema.h"
#include "kernels/reference/reference_device.h"
#include "tests/kernels/op_cases.h"

namespace millrace::kernels::testing {
namespace {

class EveryCase : public ::testing::TestWithParam<OpCase> {};
class EveryTrainedCase : public EveryCase {};
class EveryCaseOfLoneRows : public EveryCase {};

template <class Keep>
std::vector<OpCase> cases_that(Keep keep) {
  std::vector<OpCase> kept;
  std::copy_if(op_cases().begin(), op_cases().end(), std::back_inserter(kept), keep);
  return kept;
}

/// Statistics of the micro-batch couple its rows.
bool couples_rows(const OpCase& op_case) { return op_case.kind == "batch_norm" && op_case.training; }

std::string name_of(const ::testing::TestParamInfo<OpCase>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Reference, EveryCase, ::testing::ValuesIn(op_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Reference, EveryTrainedCase,
                         ::testing::ValuesIn(cases_that([](const OpCase& c) { return c.training; })), name_of);
INSTANTIATE_TEST_SUITE_P(Reference, EveryCaseOfLoneRows,
                         ::testing::ValuesIn(cases_that([](const OpCase& c) { return !couples_rows(c); })), name_of);

OpCaseResult run(const OpCase& op_case, const OpCaseData& data, Precision precision,
                 BackwardCall backward = BackwardCall::whole) {
  return run_op_case(op_case, data, *make_reference_device(), precision, backward);
}

OpCaseData data_of(const OpCase& op_case) {
  const OpCaseStage made = make_op_case_stage(op_case);
  return op_case_data(op_case, made.graph, made.op);
}

/// What backward differentiates: Σ output · its gradient.
double objective(const OpCase& op_case, const OpCaseData& data) {
  const std::vector<double> output = run(op_case, data, Precision::fp64).outputs[0];
  return std::inner_product(output.begin(), output.end(), data.output_gradients[0].begin(), 0.0);
}

/// Compares up to 40 elements of one operand, spread over it.
void expect_differences(const OpCase& op_case, OpCaseData& data, std::vector<double>& values,
                        const std::vector<double>& gradient, const std::string& what) {
  ASSERT_EQ(values.size(), gradient.size()) << what;
  const std::size_t step = std::max<std::size_t>(1, values.size() / 40);
  constexpr double kStep = 1e-5;
  for (std::size_t i = 0; i < values.size(); i += step) {
    const double value = values[i];
    values[i] = value + kStep;
    const double above = objective(op_case, data);
    values[i] = value - kStep;
    const double below = objective(op_case, data);
    values[i] = value;
    const double difference = (above - below) / (2 * kStep);
    EXPECT_NEAR(gradient[i], difference, 2e-8 * std::max(1.0, std::abs(difference))) << what << " element " << i;
  }
}

TEST_P(EveryTrainedCase, GradientsAreFiniteDifferences) {
  const OpCase& op_case = GetParam();
  OpCaseData data = data_of(op_case);
  const OpCaseResult result = run(op_case, data, Precision::fp64);
  for (std::size_t i = 0; i < data.inputs.size(); ++i) {
    if (result.input_gradients[i].empty()) continue;
    expect_differences(op_case, data, data.inputs[i], result.input_gradients[i], "input " + std::to_string(i));
  }
  for (std::size_t i = 0; i < data.parameters.size(); ++i) {
    expect_differences(op_case, data, data.parameters[i], result.parameter_gradients[i],
                       "parameter " + std::to_string(i));
  }
}

TEST_P(EveryTrainedCase, SplitBackwardGivesTheSameBits) {
  const OpCase& op_case = GetParam();
  const OpCaseData data = data_of(op_case);
  const OpCaseResult whole = run(op_case, data, Precision::fp32);
  const OpCaseResult split = run(op_case, data, Precision::fp32, BackwardCall::split);
  EXPECT_EQ(whole.input_gradients, split.input_gradients);
  EXPECT_EQ(whole.parameter_gradients, split.parameter_gradients);
}

/// One row of the case as a case of its own.
OpCaseData row_of(const OpCaseData& data, std::int64_t row, std::int64_t rows) {
  const auto slice = [&](const Values& all) {
    Values part;
    for (const std::vector<double>& values : all) {
      const auto per_row = static_cast<std::ptrdiff_t>(values.size()) / rows;
      part.emplace_back(values.begin() + row * per_row, values.begin() + (row + 1) * per_row);
    }
    return part;
  };
  return {slice(data.inputs), data.parameters, data.buffers, slice(data.output_gradients)};
}

TEST_P(EveryCaseOfLoneRows, BitsDoNotDependOnHowRowsAreBatched) {
  const OpCase& op_case = GetParam();
  const OpCaseData data = data_of(op_case);
  const OpCaseResult whole = run(op_case, data, Precision::fp32);

  OpCaseResult joined;
  joined.outputs.resize(whole.outputs.size());
  joined.input_gradients.resize(whole.input_gradients.size());
  const auto append = [](Values& to, const Values& from) {
    for (std::size_t i = 0; i < from.size(); ++i) to[i].insert(to[i].end(), from[i].begin(), from[i].end());
  };
  for (std::int64_t row = 0; row < op_case.rows; ++row) {
    OpCase one = op_case;
    one.rows = 1;
    one.valid_rows = row < op_case.valid_rows ? 1 : 0;
    one.first_sample = op_case.first_sample + row;
    OpCaseData part = row_of(data, row, op_case.rows);
    part.parameter_gradients = joined.parameter_gradients;
    const OpCaseResult result = run(one, part, Precision::fp32);
    append(joined.outputs, result.outputs);
    append(joined.input_gradients, result.input_gradients);
    joined.parameter_gradients = result.parameter_gradients;
  }
  EXPECT_EQ(whole.outputs, joined.outputs);
  EXPECT_EQ(whole.input_gradients, joined.input_gradients);
  EXPECT_EQ(whole.parameter_gradients, joined.parameter_gradients);
}

TEST_P(EveryCase, SinglePrecisionFollowsDouble) {
  const OpCase& op_case = GetParam();
  const OpCaseData data = data_of(op_case);
  const OpCaseResult a = run(op_case, data, Precision::fp64);
  const OpCaseResult b = run(op_case, data, Precision::fp32);
  const auto compare = [](const Values& wide, const Values& narrow) {
    ASSERT_EQ(wide.size(), narrow.size());
    for (std::size_t i = 0; i < wide.size(); ++i) {
      EXPECT_THAT(narrow[i], ::testing::Pointwise(::testing::DoubleNear(2e-5), wide[i]));
    }
  };
  compare(a.outputs, b.outputs);
  compare(a.input_gradients, b.input_gradients);
  compare(a.parameter_gradients, b.parameter_gradients);
  compare(a.buffer_gradients, b.buffer_gradients);
}

TEST(OpCases, CoverEveryKind) {
  std::set<std::string> covered;
  for (const OpCase& op_case : op_cases()) covered.insert(op_case.kind);
  for (const OpSchema* schema : op_schemas()) {
    EXPECT_TRUE(covered.contains(schema->name) || !schema->has_kernels) << schema->name;
  }
}

}  // namespace
}  // namespace millrace::kernels::testing
