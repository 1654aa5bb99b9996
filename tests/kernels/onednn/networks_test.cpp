// Whole networks and parts of them on the oneDNN device against the reference in double precision.
#include <algorithm>

#include <gmock/gmock.h>
#include <omp.h>
#include <dnnl.hpp>

#include "graph/graph_builder.h"
#include "kernels/onednn/onednn_device.h"
#include "kernels/reference/reference_device.h"
#include "models/families.h"
#include "tests/kernels/onednn/relative_error.h"
#include "tests/kernels/onednn/stage_expectations.h"
#include "tests/kernels/onednn/stage_run.h"

namespace millrace::kernels::testing {
namespace {

Graph small_resnet(bool bottleneck) {
  models::ResnetOptions options;
  options.blocks = {1, 1};
  options.width = 16;
  options.bottleneck = bottleneck;
  options.small_stem = !bottleneck;
  options.classes = 10;
  options.image = bottleneck ? 32 : 12;
  return models::make_resnet("resnet", options);
}

Graph small_gpt() {
  models::GptOptions options;
  options.layers = 2;
  options.width = 32;
  options.heads = 4;
  options.sequence = 80;  // more than one block of attention rows
  options.vocabulary = 50;
  options.dropout = 0.1;
  return models::make_gpt(options);
}

/// Branches of whole blocks that are joined, halves of blocks, and every pooling: the layouts' corner cases.
Graph branches() {
  using List = std::vector<std::int64_t>;
  const auto conv = [](std::int64_t out, std::int64_t kernel, bool bias = true) {
    return Attributes{{"out_channels", out},
                      {"kernel", List{kernel, kernel}},
                      {"padding", List{kernel / 2, kernel / 2}},
                      {"bias", bias}};
  };
  const Attributes pool{{"kernel", List{3, 3}}, {"stride", List{1, 1}}, {"padding", List{1, 1}}};
  GraphBuilder builder("branches");
  const TensorId image = builder.input("input", {{3, 9, 7}});
  const TensorId labels = builder.label("labels", {{}, ElementType::index});
  const TensorId stem = builder.add({.name = "stem", .kind = "conv2d", .inputs = {image}, .attributes = conv(16, 3)});
  const TensorId active = builder.add({.name = "active", .kind = "gelu", .inputs = {stem}});
  // Without bias: the gradient of one before a batch norm is nothing but rounding.
  const TensorId a = builder.add({.name = "a", .kind = "conv2d", .inputs = {active}, .attributes = conv(32, 1, false)});
  const TensorId b = builder.add({.name = "b", .kind = "max_pool", .inputs = {active}, .attributes = pool});
  const TensorId c = builder.add({.name = "c", .kind = "avg_pool", .inputs = {active}, .attributes = pool});
  const TensorId whole =
      builder.add({.name = "whole", .kind = "concat", .inputs = {a, b, c}, .attributes = {{"axis", std::int64_t{0}}}});
  const TensorId norm = builder.add({.name = "norm", .kind = "batch_norm", .inputs = {whole}});
  const TensorId odd = builder.add({.name = "odd", .kind = "conv2d", .inputs = {norm}, .attributes = conv(8, 3)});
  const TensorId mixed = builder.add(
      {.name = "mixed", .kind = "concat", .inputs = {odd, active}, .attributes = {{"axis", std::int64_t{0}}}});
  const TensorId out = builder.add({.name = "out", .kind = "conv2d", .inputs = {mixed}, .attributes = conv(16, 3)});
  const TensorId gate = builder.add({.name = "gate", .kind = "multiply", .inputs = {out, active}});
  const TensorId mean = builder.add({.name = "mean", .kind = "global_average_pool", .inputs = {gate}});
  builder.add({.name = "loss", .kind = "cross_entropy", .inputs = {mean, labels}});
  return builder.build();
}

/// Channels that do not fill their last block, through every kind that keeps blocks.
Graph padded_blocks() {
  using List = std::vector<std::int64_t>;
  const auto conv = [](std::int64_t out) {
    return Attributes{{"out_channels", out}, {"kernel", List{3, 3}}, {"padding", List{1, 1}}, {"bias", false}};
  };
  const Attributes pool{{"kernel", List{2, 2}}, {"stride", List{2, 2}}};
  GraphBuilder builder("padded_blocks");
  const TensorId image = builder.input("input", {{3, 8, 10}});
  const TensorId labels = builder.label("labels", {{}, ElementType::index});
  TensorId x = builder.add({.name = "a", .kind = "conv2d", .inputs = {image}, .attributes = conv(20)});
  x = builder.add({.name = "a_norm", .kind = "batch_norm", .inputs = {x}});
  x = builder.add({.name = "a_relu", .kind = "relu", .inputs = {x}});
  x = builder.add({.name = "a_pool", .kind = "max_pool", .inputs = {x}, .attributes = pool});
  x = builder.add({.name = "b", .kind = "conv2d", .inputs = {x}, .attributes = conv(12)});
  x = builder.add({.name = "b_norm", .kind = "batch_norm", .inputs = {x}});
  const TensorId b = builder.add({.name = "b_gelu", .kind = "gelu", .inputs = {x}});
  x = builder.add({.name = "c", .kind = "conv2d", .inputs = {b}, .attributes = conv(12)});
  x = builder.add({.name = "sum", .kind = "add", .inputs = {x, b}});
  x = builder.add({.name = "product", .kind = "multiply", .inputs = {x, b}});
  x = builder.add({.name = "c_pool", .kind = "avg_pool", .inputs = {x}, .attributes = pool});
  x = builder.add({.name = "mean", .kind = "global_average_pool", .inputs = {x}});
  builder.add({.name = "loss", .kind = "cross_entropy", .inputs = {x, labels}});
  return builder.build();
}

/// ReLUs that convolutions do, before overlapping and other maxima, convolutions and several readers; channels that do
/// not fill their last block. `active`: with the ReLU before the first maximum.
Graph convolutions_and_relus(bool active = true) {
  using List = std::vector<std::int64_t>;
  const auto conv = [](std::int64_t out) {
    return Attributes{{"out_channels", out}, {"kernel", List{3, 3}}, {"padding", List{1, 1}}};
  };
  const auto pool = [](std::int64_t kernel) {
    return Attributes{
        {"kernel", List{kernel, kernel}}, {"stride", List{2, 2}}, {"padding", List{kernel / 3, kernel / 3}}};
  };
  GraphBuilder builder("convolutions_and_relus");
  const TensorId image = builder.input("input", {{3, 13, 18}});
  const TensorId labels = builder.label("labels", {{}, ElementType::index});
  TensorId x = builder.add({.name = "a", .kind = "conv2d", .inputs = {image}, .attributes = conv(20)});
  if (active) x = builder.add({.name = "a_relu", .kind = "relu", .inputs = {x}});
  x = builder.add({.name = "a_pool", .kind = "max_pool", .inputs = {x}, .attributes = pool(3)});
  x = builder.add({.name = "b", .kind = "conv2d", .inputs = {x}, .attributes = conv(16)});
  const TensorId b = builder.add({.name = "b_relu", .kind = "relu", .inputs = {x}});
  x = builder.add({.name = "c", .kind = "conv2d", .inputs = {b}, .attributes = conv(16)});
  x = builder.add({.name = "c_relu", .kind = "relu", .inputs = {x}});
  x = builder.add({.name = "d", .kind = "conv2d", .inputs = {x}, .attributes = conv(16)});
  x = builder.add({.name = "sum", .kind = "add", .inputs = {x, b}});
  x = builder.add({.name = "e", .kind = "conv2d", .inputs = {x}, .attributes = conv(16)});
  x = builder.add({.name = "e_relu", .kind = "relu", .inputs = {x}});
  x = builder.add({.name = "e_pool", .kind = "max_pool", .inputs = {x}, .attributes = pool(2)});
  x = builder.add({.name = "flat", .kind = "flatten", .inputs = {x}});
  x = builder.add(
      {.name = "classes", .kind = "linear", .inputs = {x}, .attributes = {{"out_features", std::int64_t{10}}}});
  builder.add({.name = "loss", .kind = "cross_entropy", .inputs = {x, labels}});
  return builder.build();
}

TEST(OnednnNetworks, ConvolutionsDoTheReluBehindThem) {
  const Graph graph = convolutions_and_relus();
  expect_stage_as_reference(whole_stage(graph), {.rows = 5, .valid_rows = 3, .slots = 2});
  expect_stage_as_reference(whole_stage(graph), {.rows = 2, .valid_rows = 2, .slots = 2, .split = true});
  expect_stage_as_reference(whole_stage(graph), {.rows = 2, .valid_rows = 2, .training = false});
  for (OpId cut = 1; cut < graph.size(); ++cut) {
    SCOPED_TRACE(graph.op(cut).name);
    expect_stage_as_reference(part_of(graph, cut, static_cast<OpId>(graph.size())), {.rows = 3, .valid_rows = 3});
    expect_stage_as_reference(part_of(graph, 0, cut), {.rows = 3, .valid_rows = 3});
  }
}

TEST(OnednnNetworks, NoSlotKeepsWhatAMaximumReads) {
  const auto kept = [](const Graph& graph) {
    const auto device = make_onednn_device();
    return PreparedStage(whole_stage(graph), *device, Precision::fp32, {.rows = 4, .valid_rows = 4})
        .executable->bytes()
        .per_slot;
  };
  EXPECT_EQ(kept(convolutions_and_relus(true)), kept(convolutions_and_relus(false)));
}

TEST(OnednnNetworks, ABatchNormTellsFromItsInputWhatReluStops) {
  using List = std::vector<std::int64_t>;
  const auto kept = [](bool active) {
    GraphBuilder builder("stem");
    const TensorId labels = builder.label("labels", {{}, ElementType::index});
    TensorId x = builder.input("input", {{3, 12, 12}});
    x = builder.add({.name = "conv",
                     .kind = "conv2d",
                     .inputs = {x},
                     .attributes = {{"out_channels", std::int64_t{16}}, {"kernel", List{3, 3}}, {"bias", false}}});
    x = builder.add({.name = "norm", .kind = "batch_norm", .inputs = {x}});
    if (active) x = builder.add({.name = "relu", .kind = "relu", .inputs = {x}});
    const Attributes pool{{"kernel", List{2, 2}}, {"stride", List{2, 2}}};
    x = builder.add({.name = "pool", .kind = "max_pool", .inputs = {x}, .attributes = pool});
    x = builder.add({.name = "mean", .kind = "global_average_pool", .inputs = {x}});
    builder.add({.name = "loss", .kind = "cross_entropy", .inputs = {x, labels}});
    const Graph graph = builder.build();
    const auto device = make_onednn_device();
    return PreparedStage(whole_stage(graph), *device, Precision::fp32, {.rows = 2, .valid_rows = 2})
        .executable->bytes()
        .per_slot;
  };
  EXPECT_EQ(kept(true) - kept(false), 2 * 16 * 4) << "scale and shift of each channel";
}

TEST(OnednnNetworks, LenetInSeveralSlots) {
  const Graph graph = models::make_lenet(10, 28, 1);
  expect_stage_as_reference(whole_stage(graph), {.rows = 3, .valid_rows = 3, .slots = 3});
}

TEST(OnednnNetworks, ResnetWithPaddingRows) {
  const Graph graph = small_resnet(false);
  expect_stage_as_reference(whole_stage(graph), {.rows = 7, .valid_rows = 5});
}

TEST(OnednnNetworks, BottlenecksInHalves) {
  const Graph graph = small_resnet(true);
  expect_stage_as_reference(whole_stage(graph), {.rows = 3, .valid_rows = 3, .slots = 2, .split = true});
}

TEST(OnednnNetworks, ResnetCutAnywhereHasPlainBorders) {
  const Graph graph = small_resnet(false);
  for (OpId cut = 1; cut < graph.size(); ++cut) {
    SCOPED_TRACE(graph.op(cut).name);
    expect_stage_as_reference(part_of(graph, cut, static_cast<OpId>(graph.size())), {.rows = 3, .valid_rows = 3});
    expect_stage_as_reference(part_of(graph, 0, cut), {.rows = 3, .valid_rows = 3});
  }
}

TEST(OnednnNetworks, BranchesJoinWholeAndBrokenBlocks) {
  const Graph graph = branches();
  expect_stage_as_reference(whole_stage(graph), {.rows = 3, .valid_rows = 3, .slots = 2});
}

TEST(OnednnNetworks, ComputeOnWhenTheDeviceHasForgottenWhatNobodyUses) {
  const Graph graph = branches();
  const auto device = make_onednn_device();
  testing::PreparedStage stage(whole_stage(graph), *device, Precision::fp32, {.rows = 3, .valid_rows = 3});
  const TensorId loss = graph.op(graph.loss()).outputs[0];
  const auto losses = [&] {
    stage.forward(0);
    stage.backward(0);
    const auto* values = static_cast<const float*>(stage.executable->output(0, loss));
    return std::vector<float>(values, values + 3);
  };
  const std::vector<float> before = losses();
  const int capacity = dnnl::get_primitive_cache_capacity();
  device->compiled();
  EXPECT_EQ(losses(), before);
  EXPECT_EQ(dnnl::get_primitive_cache_capacity(), capacity) << "what is compiled later is kept again";
}

TEST(OnednnNetworks, PaddedBlocks) {
  const Graph graph = padded_blocks();
  expect_stage_as_reference(whole_stage(graph), {.rows = 5, .valid_rows = 4, .slots = 2});
}

TEST(OnednnNetworks, Gpt) {
  const Graph graph = small_gpt();
  expect_stage_as_reference(whole_stage(graph), {.rows = 3, .valid_rows = 2, .slots = 2});
}

// Some dozen roundings to eight bits, some on the other side, and what ReLU stops differs then: as far from the
// reference in bf16 as twice what that is from double precision.
void expect_bf16_near(const NamedValues& values, const NamedValues& expected, const NamedValues& exact,
                      double tolerance) {
  ASSERT_EQ(values.size(), expected.size());
  for (const auto& [name, list] : expected) {
    EXPECT_LT(relative_error(values.at(name), list), tolerance + 2 * relative_error(list, exact.at(name))) << name;
  }
}

void expect_bf16_as_reference(const StageGraph& stage, const StageRunOptions& options) {
  const StageRun run = run_stage(stage, *make_onednn_device(), Precision::bf16, options);
  const StageRun expected = run_stage(stage, *make_reference_device(), Precision::bf16, options);
  const StageRun exact = run_stage(stage, *make_reference_device(), Precision::fp64, options);
  expect_bf16_near(run.outputs, expected.outputs, exact.outputs, 1e-2);
  expect_bf16_near(run.input_gradients, expected.input_gradients, exact.input_gradients, 3e-2);
  expect_bf16_near(run.parameter_gradients, expected.parameter_gradients, exact.parameter_gradients, 3e-2);
}

TEST(OnednnNetworks, InBf16) {
  for (const Graph& graph : {models::make_lenet(10, 28, 1), small_resnet(false), small_resnet(true), branches(),
                             padded_blocks(), small_gpt()}) {
    SCOPED_TRACE(graph.name());
    expect_bf16_as_reference(whole_stage(graph), {.rows = 4, .valid_rows = 3, .slots = 2});
    expect_bf16_as_reference(whole_stage(graph), {.rows = 2, .valid_rows = 2, .split = true});
    expect_bf16_as_reference(part_of(graph, 3, static_cast<OpId>(graph.size()) - 2), {.rows = 2, .valid_rows = 2});
  }
}

TEST(OnednnNetworks, ForwardWithoutTraining) {
  for (const Graph& graph : {small_resnet(true), small_gpt()}) {
    expect_stage_as_reference(whole_stage(graph), {.rows = 1, .valid_rows = 1, .training = false});
  }
}

TEST(OnednnNetworks, PackedWeightsFollowTheirValues) {
  const Graph graph = models::make_lenet(10, 28, 1);
  const auto device = make_onednn_device();
  PreparedStage prepared(whole_stage(graph), *device, Precision::fp32, {.rows = 2, .valid_rows = 2});
  const TensorId loss = graph.op(graph.loss()).outputs[0];
  const auto losses = [&] {
    prepared.forward(0);
    return static_cast<const float*>(prepared.executable->output(0, loss))[0];
  };
  const float before = losses();
  for (const TensorId id : prepared.parameters.order()) {
    float* values = static_cast<float*>(prepared.parameters.value(id));
    for (std::int64_t i = 0; i < prepared.parameters.elements(id); ++i) values[i] *= 1.5F;
  }
  EXPECT_GT(prepared.executable->bytes().workspace, 0);
  const float changed = losses();
  EXPECT_NE(changed, before);
  PreparedStage fresh(whole_stage(graph), *device, Precision::fp32, {.rows = 2, .valid_rows = 2});
  for (const TensorId id : prepared.parameters.order()) {
    std::copy_n(static_cast<float*>(prepared.parameters.value(id)), prepared.parameters.elements(id),
                static_cast<float*>(fresh.parameters.value(id)));
  }
  fresh.forward(0);
  EXPECT_EQ(static_cast<const float*>(fresh.executable->output(0, loss))[0], changed);
}

#if defined(__SANITIZE_THREAD__)
constexpr int kTeam = 1;  // ThreadSanitizer does not know libgomp's barriers
#else
constexpr int kTeam = 3;
#endif

TEST(OnednnNetworks, OwnLoopsDoNotDependOnTheNumberOfThreads) {
  // All but the matrix products, whose sums oneDNN splits as it likes.
  GraphBuilder builder("loops");
  const TensorId image = builder.input("input", {{32, 24, 24}});
  const TensorId norm = builder.add({.name = "norm", .kind = "batch_norm", .inputs = {image}});
  const TensorId flat = builder.add({.name = "flat", .kind = "flatten", .inputs = {norm}});
  const TensorId layer = builder.add({.name = "layer", .kind = "layer_norm", .inputs = {flat}});
  const TensorId soft = builder.add({.name = "soft", .kind = "softmax", .inputs = {layer}});
  const TensorId labels = builder.label("labels", {{}, ElementType::index});
  builder.add({.name = "loss", .kind = "cross_entropy", .inputs = {soft, labels}});
  const Graph graph = builder.build();
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const StageRun one =
      run_stage(whole_stage(graph), *make_onednn_device(), Precision::fp32, {.rows = 5, .valid_rows = 5});
  omp_set_num_threads(kTeam);
  const StageRun team =
      run_stage(whole_stage(graph), *make_onednn_device(), Precision::fp32, {.rows = 5, .valid_rows = 5});
  omp_set_num_threads(before);
  EXPECT_EQ(one.outputs, team.outputs);
  EXPECT_EQ(one.parameter_gradients, team.parameter_gradients);
}

}  // namespace
}  // namespace millrace::kernels::testing
