// Products of linear layers on bf16 operands as they lie: what they round, what they need, and where they are used.
#include "kernels/onednn/bf16_product.h"

#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "kernels/bf16/numbers.h"
#include "kernels/onednn/onednn_device.h"
#include "kernels/onednn/race.h"
#include "kernels/reference/reference_device.h"
#include "kernels/sample_device.h"
#include "tests/kernels/onednn/linear_cases.h"
#include "tests/kernels/onednn/relative_error.h"

namespace millrace::kernels::testing {
namespace {

/// A table that names the native product for all passes of a case, on processors that have them.
class Bf16Products : public ::testing::Test {
 protected:
  Bf16Products() : folder_(std::filesystem::temp_directory_path() / fmt::format("millrace-bf16-{}", ::getpid())) {}
  ~Bf16Products() override { std::filesystem::remove_all(folder_); }

  void SetUp() override {
    const onednn::Bf16Product product({}, onednn::Pass::forward, {4, 4, 4, true}, 1);
    if (!product) GTEST_SKIP() << "not offered on this processor";
  }

  std::shared_ptr<Variants> native(const OpCase& op_case) const {
    Variants variants(folder_, "test");
    for (const onednn::Pass pass : kLinearPasses) {
      variants.find_or_measure(onednn::bf16_linear_work(pass, shape_of_linear(op_case)), [] {
        return VariantChoice{"native", {}};
      });
    }
    auto told = std::make_shared<Variants>();
    told->add(variants.text());
    return told;
  }

  std::filesystem::path folder_;
};

std::vector<double> in_bf16(std::vector<double> numbers) {
  for (double& number : numbers) number = from_bf16(to_bf16(static_cast<float>(number)));
  return numbers;
}

/// With every operand as a product in bf16 reads it, and sums that it is to be added to.
OpCaseData rounded_data(const OpCase& op_case) {
  const OpCaseStage made = make_op_case_stage(op_case);
  OpCaseData data = op_case_data(op_case, made.graph, made.op);
  data.inputs[0] = in_bf16(data.inputs[0]);
  data.output_gradients[0] = in_bf16(data.output_gradients[0]);
  data.parameters[0] = in_bf16(data.parameters[0]);
  data.parameter_gradients = data.parameters;
  return data;
}

// Nothing is lost but by the last rounding of what goes back to bf16, half of 1/128 of an element at most.
TEST_F(Bf16Products, RoundOperandsAndResultsAndNothingElse) {
  for (const OpCase& op_case :
       {linear_case(5, 7, 3, true), linear_case(16, 1024, 40, true), linear_case(33, 65, 129, false),
        linear_case(1, 384, 16, true), linear_case(300, 20, 130, true)}) {
    SCOPED_TRACE(onednn::bf16_linear_work(onednn::Pass::forward, shape_of_linear(op_case)));
    const OpCaseData data = rounded_data(op_case);
    OpCaseData given = data;  // weights come in fp32: what is nearer to them than half a step is rounded away
    for (double& weight : given.parameters[0]) weight *= 1 + 0x1p-12;
    const auto variants = native(op_case);
    const OpCaseResult expected = run_op_case(op_case, data, *make_reference_device(), Precision::fp64);
    for (const BackwardCall backward : {BackwardCall::whole, BackwardCall::split}) {
      const OpCaseResult found = run_op_case(op_case, given, *make_onednn_device(variants), Precision::bf16, backward);
      EXPECT_EQ(variants->used().size(), 3U);
      EXPECT_LT(relative_error(found.outputs[0], expected.outputs[0]), 0x1p-8);
      EXPECT_LT(relative_error(found.outputs[0], in_bf16(expected.outputs[0])), 0x1p-11);
      EXPECT_LT(relative_error(found.input_gradients[0], expected.input_gradients[0]), 0x1p-8);
      EXPECT_LT(relative_error(found.input_gradients[0], in_bf16(expected.input_gradients[0])), 0x1p-11);
      for (std::size_t i = 0; i < expected.parameter_gradients.size(); ++i) {
        EXPECT_LT(relative_error(found.parameter_gradients[i], expected.parameter_gradients[i]), 1e-6) << i;
      }
    }
  }
}

TEST_F(Bf16Products, AreNearFp32AsCopiesAre) {
  const OpCase op_case = linear_case(64, 96, 80, true);
  const OpCaseStage made = make_op_case_stage(op_case);
  const OpCaseData data = op_case_data(op_case, made.graph, made.op);
  const OpCaseResult exact = run_op_case(op_case, data, *make_reference_device(), Precision::fp64);
  const OpCaseResult copies = run_op_case(op_case, data, *make_onednn_device(), Precision::bf16);
  const OpCaseResult found = run_op_case(op_case, data, *make_onednn_device(native(op_case)), Precision::bf16);
  const auto expect_as_near = [](const Values& one, const Values& other, const Values& best) {
    for (std::size_t i = 0; i < best.size(); ++i) {
      EXPECT_LT(relative_error(one[i], best[i]), 1.01 * relative_error(other[i], best[i]) + 1e-6) << i;
      EXPECT_LT(relative_error(one[i], best[i]), 0x1p-7) << i;
    }
  };
  expect_as_near(found.outputs, copies.outputs, exact.outputs);
  expect_as_near(found.input_gradients, copies.input_gradients, exact.input_gradients);
  expect_as_near(found.parameter_gradients, copies.parameter_gradients, exact.parameter_gradients);
}

// Each pass on its own: the others are by copies, in the same scratch.
TEST_F(Bf16Products, PassesMayDiffer) {
  const OpCase op_case = linear_case(33, 65, 129, true);
  const OpCaseData data = rounded_data(op_case);
  const OpCaseResult copies = run_op_case(op_case, data, *make_onednn_device(), Precision::bf16);
  const OpCaseResult whole = run_op_case(op_case, data, *make_onednn_device(native(op_case)), Precision::bf16);
  for (const onednn::Pass pass : kLinearPasses) {
    SCOPED_TRACE(onednn::words(pass));
    Variants one(folder_ / onednn::words(pass), "test");
    one.find_or_measure(onednn::bf16_linear_work(pass, shape_of_linear(op_case)), [] {
      return VariantChoice{"native", {}};
    });
    const auto variants = std::make_shared<Variants>();
    variants->add(one.text());
    const OpCaseResult found = run_op_case(op_case, data, *make_onednn_device(variants), Precision::bf16);
    using onednn::Pass;
    EXPECT_EQ(found.outputs, (pass == Pass::forward ? whole : copies).outputs);
    EXPECT_EQ(found.input_gradients, (pass == Pass::backward_data ? whole : copies).input_gradients);
    EXPECT_EQ(found.parameter_gradients, (pass == Pass::backward_weights ? whole : copies).parameter_gradients);
  }
}

// Of what copies take in scratch, the one of the weight is left, at half its size.
TEST_F(Bf16Products, NeedNoCopiesOfTensors) {
  const OpCase op_case = linear_case(512, 64, 64, true);
  const OpCaseStage made = make_op_case_stage(op_case);
  const StageGraph stage = made.stage();
  StageParameters parameters(stage, stage.parameters, Precision::bf16);
  CompileOptions options;
  options.rows = op_case.rows;
  const auto workspace = [&](const std::shared_ptr<Variants>& variants) {
    return make_onednn_device(variants)->compile(stage, parameters, options)->bytes().workspace;
  };
  const onednn::Engine engine;
  std::int64_t scratch = 0;
  for (const onednn::Pass pass : kLinearPasses) {
    scratch = std::max(scratch, onednn::Bf16Product(engine, pass, shape_of_linear(op_case), 1).scratch_bytes());
  }
  const std::int64_t tensor = 512 * 64 * 4, weight = 64 * 64 * 4;
  EXPECT_EQ(workspace(nullptr) - workspace(native(op_case)), 3 * tensor + weight - scratch);
}

TEST_F(Bf16Products, AreOfBf16AndOfStagesThatMayDifferByGrid) {
  const OpCase op_case = linear_case(16, 64, 40, true);
  const OpCaseData data = rounded_data(op_case);
  const auto variants = native(op_case);
  run_op_case(op_case, data, *make_onednn_device(variants), Precision::fp32);
  EXPECT_TRUE(variants->used().empty());
  SampleDevice alike(make_onednn_device(variants));
  run_op_case(op_case, data, alike, Precision::bf16);
  EXPECT_TRUE(variants->used().empty());
}

TEST_F(Bf16Products, LargeWorkIsMeasuredAgainstCopies) {
  const auto measured = [&](const OpCase& op_case) {
    const auto variants = std::make_shared<Variants>(folder_, "measured");
    run_op_case(op_case, rounded_data(op_case), *make_onednn_device(variants), Precision::bf16);
    return variants->used();
  };
  EXPECT_TRUE(measured(linear_case(16, 64, 40, true)).empty());
  const OpCase large = linear_case(64, 512, 512, true);
  const auto choices = measured(large);
  EXPECT_EQ(choices.size(), 6U) << "those between products of fp32 too";
  for (const onednn::Pass pass : kLinearPasses) {
    const VariantChoice& choice = choices.at(onednn::bf16_linear_work(pass, shape_of_linear(large)));
    ASSERT_EQ(choice.times.size(), 2U);
    const bool faster = choice.times[0].seconds > 1.1 * choice.times[1].seconds;
    EXPECT_EQ(choice.variant, faster ? "native" : "converted");
  }
}

}  // namespace
}  // namespace millrace::kernels::testing
