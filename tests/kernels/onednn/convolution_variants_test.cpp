// Convolutions by Winograd's algorithm: how far they are from the reference, and where they are used.
#include "kernels/onednn/convolution_variants.h"

#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "graph/graph_builder.h"
#include "kernels/onednn/convolution_shape.h"
#include "kernels/onednn/onednn_device.h"
#include "kernels/reference/reference_device.h"
#include "kernels/sample_device.h"
#include "tests/kernels/onednn/relative_error.h"
#include "tests/kernels/onednn/stage_expectations.h"
#include "tests/kernels/onednn/stage_run.h"
#include "tests/kernels/op_cases.h"

namespace millrace::kernels::testing {
namespace {

namespace fs = std::filesystem;
using List = std::vector<std::int64_t>;

OpCase convolution_case(std::int64_t in, std::int64_t out, std::int64_t height, std::int64_t width,
                        std::int64_t padding, bool bias) {
  return {"conv",
          "conv2d",
          {{"out_channels", out}, {"kernel", List{3, 3}}, {"padding", List{padding, padding}}, {"bias", bias}},
          {{{in, height, width}}},
          2,
          2};
}

onednn::ConvolutionShape shape_of(const OpCase& op_case) {
  const OpCaseStage made = make_op_case_stage(op_case);
  return onednn::convolution_shape(made.graph, made.graph.op(made.op), op_case.rows);
}

bool has_winograd(const OpCase& op_case) {
  const onednn::ConvolutionShape shape = shape_of(op_case);
  try {
    onednn::make_convolution({}, onednn::Pass::forward, shape, onednn::blocked_desc(shape.source, 16),
                             onednn::blocked_desc(shape.destination, 16), dnnl::algorithm::convolution_winograd);
    return true;
  } catch (const dnnl::error&) {
    return false;
  }
}

/// A table that names one algorithm for all passes of a case.
class ConvolutionVariants : public ::testing::Test {
 protected:
  ConvolutionVariants() : folder_(fs::temp_directory_path() / fmt::format("millrace-winograd-{}", ::getpid())) {}
  ~ConvolutionVariants() override { fs::remove_all(folder_); }

  std::shared_ptr<Variants> all(const OpCase& op_case, const std::string& name) const {
    auto variants = std::make_shared<Variants>(folder_, "test " + name);
    for (const onednn::Pass pass :
         {onednn::Pass::forward, onednn::Pass::backward_data, onednn::Pass::backward_weights}) {
      variants->find_or_measure(onednn::convolution_work(pass, shape_of(op_case)), [&] {
        return VariantChoice{name, {}};
      });
    }
    return variants;
  }

  fs::path folder_;
};

// Direct convolutions stay under 2e-6 forward and 5e-6 backward.
TEST_F(ConvolutionVariants, WinogradRoundsALittleMore) {
  if (!has_winograd(convolution_case(16, 16, 8, 8, 1, false))) GTEST_SKIP() << "not offered on this processor";
  for (const OpCase& op_case : {convolution_case(16, 32, 8, 8, 1, true), convolution_case(64, 64, 14, 14, 1, false),
                                convolution_case(32, 16, 9, 7, 0, true), convolution_case(128, 64, 7, 7, 1, false)}) {
    const onednn::ConvolutionShape shape = shape_of(op_case);
    SCOPED_TRACE(onednn::convolution_work(onednn::Pass::forward, shape));
    const OpCaseStage made = make_op_case_stage(op_case);
    const OpCaseData data = op_case_data(op_case, made.graph, made.op);
    const OpCaseResult expected = run_op_case(op_case, data, *make_reference_device(), Precision::fp64);
    const OpCaseResult direct = run_op_case(op_case, data, *make_onednn_device(), Precision::fp32);
    const OpCaseResult found =
        run_op_case(op_case, data, *make_onednn_device(all(op_case, "winograd")), Precision::fp32);
    EXPECT_NE(found.outputs, direct.outputs) << "another algorithm rounds otherwise";
    EXPECT_NE(found.input_gradients, direct.input_gradients);
    EXPECT_NE(found.parameter_gradients, direct.parameter_gradients);
    EXPECT_LT(relative_error(found.outputs[0], expected.outputs[0]), 5e-6);
    EXPECT_LT(relative_error(found.input_gradients[0], expected.input_gradients[0]), 5e-6);
    for (std::size_t i = 0; i < expected.parameter_gradients.size(); ++i) {
      EXPECT_LT(relative_error(found.parameter_gradients[i], expected.parameter_gradients[i]), 2e-5);
    }
  }
}

// Reordered there and back, with kernels and strides of any size.
TEST_F(ConvolutionVariants, ChannelsLastRoundNoMore) {
  const OpCase few{
      "conv",           "conv2d", {{"out_channels", std::int64_t{50}}, {"kernel", List{5, 5}}, {"bias", true}},
      {{{20, 12, 12}}}, 3,        3};
  OpCase strided = convolution_case(24, 40, 9, 7, 1, false);
  strided.attributes.set("stride", List{2, 2});
  for (const OpCase& op_case : {few, strided}) {
    SCOPED_TRACE(onednn::convolution_work(onednn::Pass::forward, shape_of(op_case)));
    const OpCaseStage made = make_op_case_stage(op_case);
    const OpCaseData data = op_case_data(op_case, made.graph, made.op);
    const auto variants = all(op_case, "channels last");
    const OpCaseResult expected = run_op_case(op_case, data, *make_reference_device(), Precision::fp64);
    const OpCaseResult found = run_op_case(op_case, data, *make_onednn_device(variants), Precision::fp32);
    EXPECT_EQ(variants->used().size(), 3U);
    EXPECT_LT(relative_error(found.outputs[0], expected.outputs[0]), 2e-6);
    EXPECT_LT(relative_error(found.input_gradients[0], expected.input_gradients[0]), 2e-6);
    for (std::size_t i = 0; i < expected.parameter_gradients.size(); ++i) {
      EXPECT_LT(relative_error(found.parameter_gradients[i], expected.parameter_gradients[i]), 5e-6);
    }
  }
}

TEST_F(ConvolutionVariants, EitherAlgorithmDoesTheReluBehindIt) {
  const OpCase op_case = convolution_case(16, 32, 8, 8, 1, true);
  if (!has_winograd(op_case)) GTEST_SKIP() << "not offered on this processor";
  GraphBuilder builder("relu");
  const TensorId labels = builder.label("labels", {{}, ElementType::index});
  TensorId x = builder.input("input", {op_case.inputs[0].dims});
  x = builder.add({.name = "conv", .kind = "conv2d", .inputs = {x}, .attributes = op_case.attributes});
  x = builder.add({.name = "relu", .kind = "relu", .inputs = {x}});
  x = builder.add({.name = "mean", .kind = "global_average_pool", .inputs = {x}});
  builder.add({.name = "loss", .kind = "cross_entropy", .inputs = {x, labels}});
  const Graph graph = builder.build();
  const StageRunOptions options{.rows = 2, .valid_rows = 2};
  const StageRun expected = run_stage(whole_stage(graph), *make_reference_device(), Precision::fp64, options);
  const StageRun found =
      run_stage(whole_stage(graph), *make_onednn_device(all(op_case, "winograd")), Precision::fp32, options);
  EXPECT_NE(found.parameter_gradients,
            run_stage(whole_stage(graph), *make_onednn_device(), Precision::fp32, options).parameter_gradients);
  expect_values_near(found.outputs, expected.outputs, 1e-5);
  expect_values_near(found.parameter_gradients, expected.parameter_gradients, 1e-4);
}

TEST_F(ConvolutionVariants, StagesThatAreAlikeOnEveryGridUseNone) {
  const OpCase op_case = convolution_case(16, 32, 8, 8, 1, true);
  const OpCaseStage made = make_op_case_stage(op_case);
  const OpCaseData data = op_case_data(op_case, made.graph, made.op);
  const auto variants = all(op_case, "winograd");
  const auto fresh = std::make_shared<Variants>();
  fresh->add(variants->text());
  SampleDevice standard(make_onednn_device());
  SampleDevice with(make_onednn_device(fresh));
  EXPECT_EQ(run_op_case(op_case, data, with, Precision::fp32).outputs,
            run_op_case(op_case, data, standard, Precision::fp32).outputs);
  EXPECT_TRUE(fresh->used().empty());
}

TEST_F(ConvolutionVariants, LargeWorkIsMeasuredAndSmallWorkIsNot) {
  const auto measured = [&](const OpCase& op_case) {
    const auto variants = std::make_shared<Variants>(folder_, "measured");
    const OpCaseStage made = make_op_case_stage(op_case);
    const OpCaseData data = op_case_data(op_case, made.graph, made.op);
    run_op_case(op_case, data, *make_onednn_device(variants), Precision::fp32);
    return variants->used();
  };
  const OpCase large = convolution_case(64, 64, 16, 16, 1, false);
  EXPECT_TRUE(measured(convolution_case(16, 16, 8, 8, 1, false)).empty());
  if (!has_winograd(large)) GTEST_SKIP() << "not offered on this processor";
  const auto choices = measured(large);
  ASSERT_EQ(choices.size(), 3U);
  for (const auto& [work, choice] : choices) {
    ASSERT_EQ(choice.times.size(), 2U) << work;
    const bool faster = choice.times[0].seconds > 1.1 * choice.times[1].seconds;
    EXPECT_EQ(choice.variant, faster ? "winograd" : "direct") << work;
  }
}

TEST_F(ConvolutionVariants, RowsShareAChoiceUpToWhatIsMeasured) {
  OpCase op_case = convolution_case(64, 64, 56, 56, 1, false);
  const auto work = [&](std::int64_t rows) {
    op_case.rows = rows;
    return onednn::convolution_work(onednn::Pass::forward, shape_of(op_case));
  };
  EXPECT_EQ(work(1), "convolution forward 64x56x56 to 64x56x56 by 3x3 padding 1x1 rows 1");
  EXPECT_EQ(work(3), work(2));
  EXPECT_EQ(work(64), work(8));
  EXPECT_NE(work(8), work(4));
}

}  // namespace
}  // namespace millrace::kernels::testing
