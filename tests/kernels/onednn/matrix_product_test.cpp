// Products of linear layers by a primitive: as near to the reference as sgemm, and where they are used.
#include "kernels/onednn/matrix_product.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "kernels/onednn/makers.h"
#include "kernels/onednn/onednn_device.h"
#include "kernels/reference/reference_device.h"
#include "kernels/sample_device.h"
#include "models/registry.h"
#include "tests/kernels/onednn/linear_cases.h"
#include "tests/kernels/onednn/relative_error.h"

namespace millrace::kernels::testing {
namespace {

namespace fs = std::filesystem;

/// A table that names the primitive for all passes of a case.
class LinearVariants : public ::testing::Test {
 protected:
  LinearVariants() : folder_(fs::temp_directory_path() / fmt::format("millrace-linear-{}", ::getpid())) {}
  ~LinearVariants() override { fs::remove_all(folder_); }

  std::shared_ptr<Variants> matmul(const OpCase& op_case) const {
    auto variants = std::make_shared<Variants>(folder_, "test");
    for (const onednn::Pass pass : kLinearPasses) {
      variants->find_or_measure(onednn::linear_work(pass, shape_of_linear(op_case)), [] {
        return VariantChoice{"matmul", {}};
      });
    }
    return variants;
  }

  fs::path folder_;
};

TEST_F(LinearVariants, PrimitivesRoundNoMore) {
  for (const OpCase& op_case : {linear_case(5, 7, 3, true), linear_case(16, 1024, 40, true),
                                linear_case(33, 65, 129, false), linear_case(1, 384, 16, true)}) {
    SCOPED_TRACE(onednn::linear_work(onednn::Pass::forward, shape_of_linear(op_case)));
    const OpCaseStage made = make_op_case_stage(op_case);
    const OpCaseData data = op_case_data(op_case, made.graph, made.op);
    const auto variants = matmul(op_case);
    const OpCaseResult expected = run_op_case(op_case, data, *make_reference_device(), Precision::fp64);
    const OpCaseResult found = run_op_case(op_case, data, *make_onednn_device(variants), Precision::fp32);
    EXPECT_EQ(variants->used().size(), 3U);
    EXPECT_LT(relative_error(found.outputs[0], expected.outputs[0]), 1e-6);
    EXPECT_LT(relative_error(found.input_gradients[0], expected.input_gradients[0]), 1e-6);
    for (std::size_t i = 0; i < expected.parameter_gradients.size(); ++i) {
      EXPECT_LT(relative_error(found.parameter_gradients[i], expected.parameter_gradients[i]), 1e-6);
    }
  }
}

// A primitive adds to what is there, and reads operands either way round.
TEST_F(LinearVariants, PrimitivesMakeTheProductsOfSgemm) {
  const onednn::Engine engine;
  for (const onednn::Pass pass : kLinearPasses) {
    for (const bool bias : {false, true}) {
      const onednn::Gemm shape = onednn::linear_product(pass, {6, 10, 4, bias});
      std::vector<float> a(static_cast<std::size_t>(shape.m * shape.k)), b(static_cast<std::size_t>(shape.k * shape.n));
      for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7) - 3;
      for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5) - 2;
      std::vector<float> expected(static_cast<std::size_t>(shape.m * shape.n), 0.5F), found = expected;
      onednn::gemm(shape, a.data(), b.data(), expected.data());
      onednn::MatmulPrimitive made = onednn::make_matmul(engine, shape);
      std::vector<std::byte> scratch(static_cast<std::size_t>(made.scratch) + 64);
      onednn::bind_matmul(made.primitive, a.data(), b.data(), found.data(), scratch.data());
      made.primitive.execute();
      EXPECT_EQ(found, expected) << "small whole numbers and halves are exact";
    }
  }
}

// Stages split over ranks receive what is an input of their part's graph, and send its gradient back.
TEST_F(LinearVariants, InputsOfAGraphHaveAGradientWhereOneIsWanted) {
  const Graph graph = models::make("mlp", {{"inputs", "2"}, {"hidden", "[3]"}, {"classes", "2"}});
  const auto& operators = graph.operators();
  const auto op = std::find_if(operators.begin(), operators.end(),
                               [](const Operator& one) { return one.schema->name == "linear"; });
  ASSERT_EQ(graph.tensor(op->inputs[0]).role, Role::input);
  const onednn::Engine engine;
  const auto kernel = onednn::make_linear(onednn::Site{graph, *op, 1, true, 1, 1, engine, 0}, nullptr);
  const std::vector<float> weight{1, 2, 3, 4, 5, 6}, gradient{1, 10, 100};
  std::vector<float> found{-1, -1};
  const void* const parameters[] = {weight.data(), nullptr};
  const void* const output_gradients[] = {gradient.data()};
  void* const input_gradients[] = {found.data()};
  OpCall call;
  call.rows = call.valid_rows = 1;
  call.parameters = parameters;
  call.output_gradients = output_gradients;
  call.input_gradients = input_gradients;
  kernel->backward_input(call);
  EXPECT_EQ(found, (std::vector<float>{1 + 30 + 500, 2 + 40 + 600}));
}

TEST_F(LinearVariants, StagesThatAreAlikeOnEveryGridUseNone) {
  const OpCase op_case = linear_case(16, 64, 40, true);
  const OpCaseStage made = make_op_case_stage(op_case);
  const OpCaseData data = op_case_data(op_case, made.graph, made.op);
  const auto fresh = std::make_shared<Variants>();
  fresh->add(matmul(op_case)->text());
  SampleDevice device(make_onednn_device(fresh));
  run_op_case(op_case, data, device, Precision::fp32);
  EXPECT_TRUE(fresh->used().empty());
}

TEST_F(LinearVariants, LargeWorkIsMeasuredAndSmallWorkIsNot) {
  const auto measured = [&](const OpCase& op_case) {
    const auto variants = std::make_shared<Variants>(folder_, "measured");
    const OpCaseStage made = make_op_case_stage(op_case);
    const OpCaseData data = op_case_data(op_case, made.graph, made.op);
    run_op_case(op_case, data, *make_onednn_device(variants), Precision::fp32);
    return variants->used();
  };
  EXPECT_TRUE(measured(linear_case(16, 64, 40, true)).empty());
  const auto choices = measured(linear_case(64, 512, 512, true));
  ASSERT_EQ(choices.size(), 3U);
  for (const auto& [work, choice] : choices) {
    ASSERT_EQ(choice.times.size(), 2U) << work;
    const bool faster = choice.times[0].seconds > 1.05 * choice.times[1].seconds;
    EXPECT_EQ(choice.variant, faster ? "matmul" : "sgemm") << work;
  }
}

TEST_F(LinearVariants, RowsShareAChoiceUpToWhatIsMeasured) {
  const auto work = [](std::int64_t rows, std::int64_t outputs) {
    return onednn::linear_work(onednn::Pass::forward, {rows, 1024, outputs, true});
  };
  EXPECT_EQ(work(100, 1024), "linear forward 1024 to 1024 bias rows 64");
  EXPECT_EQ(work(5000, 1024), work(512, 1024));
  EXPECT_NE(work(512, 1024), work(256, 1024));
  EXPECT_EQ(work(5000, 50000), "linear forward 1024 to 50000 bias rows 128");
}

}  // namespace
}  // namespace millrace::kernels::testing
