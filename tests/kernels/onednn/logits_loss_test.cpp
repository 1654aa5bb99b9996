// A large vocabulary: logits are made a chunk at a time where no backward keeps them, with the results of whole ones.
#include <algorithm>

#include <gmock/gmock.h>

#include "graph/graph_builder.h"
#include "kernels/onednn/onednn_device.h"
#include "tests/kernels/onednn/stage_expectations.h"
#include "tests/kernels/onednn/stage_run.h"

namespace millrace::kernels::testing {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kPositions = 256, kClasses = 32768;
constexpr std::int64_t kLogitsOfRow = kPositions * kClasses * 4;  // 32 MiB; a chunk is 64
constexpr OpId kHead = 1;

Graph language(bool bias) {
  GraphBuilder builder("language");
  const TensorId input = builder.input("input", {{kPositions, 8}});
  const TensorId labels = builder.label("labels", {{kPositions}, ElementType::index});
  const auto linear = [&](const char* name, TensorId from, std::int64_t out, bool with_bias) {
    return builder.add(
        {.name = name, .kind = "linear", .inputs = {from}, .attributes = {{"out_features", out}, {"bias", with_bias}}});
  };
  const TensorId body = linear("body", input, 12, true);
  const TensorId logits = linear("head", body, kClasses, bias);
  builder.add({.name = "loss", .kind = "cross_entropy", .inputs = {logits, labels}});
  return builder.build();
}

std::int64_t held(const Graph& graph, const StageRunOptions& options) {
  const auto device = make_onednn_device();
  const ExecutableBytes bytes =
      PreparedStage(whole_stage(graph), *device, Precision::fp32, options).executable->bytes();
  return bytes.slots * bytes.per_slot + bytes.workspace;
}

StageRun run(const Graph& graph, const StageRunOptions& options) {
  return run_stage(whole_stage(graph), *make_onednn_device(), Precision::fp32, options);
}

TEST(LogitsLoss, EvaluatesAsTheReference) {
  expect_stage_as_reference(whole_stage(language(true)), {.rows = 3, .valid_rows = 2, .training = false});
}

TEST(LogitsLoss, TrainsAsTheReference) {
  expect_stage_as_reference(whole_stage(language(true)), {.rows = 3, .valid_rows = 2, .recompute = {kHead}});
}

// A row alone has whole logits; 3 rows are a chunk and a half, 5 are two and a half. Borders are the same row by row.
TEST(LogitsLoss, LossesDoNotDependOnTheChunks) {
  const Graph graph = language(true);
  for (const bool training : {false, true}) {
    const auto outputs = [&](std::int64_t rows) {
      return run(graph, {.rows = rows, .valid_rows = rows, .training = training, .recompute = {kHead}}).outputs;
    };
    const NamedValues longest = outputs(5);
    for (const std::int64_t rows : {1, 3}) {
      for (const auto& [name, values] : outputs(rows)) {
        EXPECT_TRUE(std::equal(values.begin(), values.end(), longest.at(name).begin())) << name << " of " << rows;
      }
    }
    const StageRunOptions whole{.rows = 5, .valid_rows = 5, .training = training, .plain = true};
    EXPECT_EQ(longest, run(graph, whole).outputs);
  }
}

TEST(LogitsLoss, GradientsAreThoseOfWholeLogitsAndAlwaysTheSame) {
  const auto compare = [](const StageGraph& stage, const std::vector<OpId>& recompute, int slots) {
    const auto of = [&](const std::vector<OpId>& again) {
      return run_stage(stage, *make_onednn_device(), Precision::fp32,
                       {.rows = 3, .valid_rows = 3, .slots = slots, .recompute = again});
    };
    const StageRun chunked = of(recompute), whole = of({});
    EXPECT_EQ(chunked.outputs, whole.outputs);
    EXPECT_EQ(chunked.parameter_gradients, of(recompute).parameter_gradients);
    expect_values_near(chunked.parameter_gradients, whole.parameter_gradients, 1e-6);
    expect_values_near(chunked.input_gradients, whole.input_gradients, 1e-6);
  };
  const Graph graph = language(true), without_bias = language(false);
  compare(whole_stage(graph), {kHead}, 2);
  compare(whole_stage(without_bias), {0, kHead, 2}, 1);
  compare(part_of(graph, kHead, 3), {kHead}, 1);
}

TEST(LogitsLoss, MemoryHoldsAChunk) {
  const Graph graph = language(true);
  const auto of = [&](StageRunOptions options) {
    options.rows = options.valid_rows = 5;
    return held(graph, options);
  };
  const std::int64_t whole = 5 * kLogitsOfRow;
  const std::int64_t chunk = 66 * kMiB;  // and what else there is
  EXPECT_LT(of({.training = false}), chunk);
  EXPECT_LT(of({.recompute = {kHead}}), chunk);
  EXPECT_LT(of({.slots = 2, .recompute = {0, kHead, 2}}), chunk + kMiB);
  // Where it does not fit.
  EXPECT_GT(of({}), whole);
  EXPECT_GT(of({.training = false, .plain = true}), whole);
  EXPECT_GT(of({.recompute = {kHead}, .plain = true}), whole);
  EXPECT_GT(of({.split = true, .recompute = {kHead}}), whole);
  // The loss is another stage's.
  const auto device = make_onednn_device();
  const PreparedStage cut(part_of(graph, 0, 2), *device, Precision::fp32, {.rows = 5, .training = false});
  EXPECT_GT(cut.executable->bytes().per_slot, whole);
}

}  // namespace
}  // namespace millrace::kernels::testing
