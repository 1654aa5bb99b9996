// Batch norms with the sums and ReLUs behind them, and how exact their statistics are.
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "graph/graph_builder.h"
#include "kernels/onednn/onednn_factory.h"
#include "tests/kernels/onednn/stage_expectations.h"
#include "tests/kernels/onednn/stage_run.h"

namespace millrace::kernels::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Blocks whose shortcuts are what no gradient is wanted of, the output of a block with two readers, another batch
/// norm, the input of the batch norm itself, and a tensor with three readers; last a sum that no ReLU follows.
Graph residual_blocks(std::int64_t channels) {
  using List = std::vector<std::int64_t>;
  GraphBuilder builder("residual_blocks");
  const auto conv_norm = [&](const std::string& name, TensorId x) {
    x = builder.add(
        {.name = name,
         .kind = "conv2d",
         .inputs = {x},
         .attributes = {{"out_channels", channels}, {"kernel", List{3, 3}}, {"padding", List{1, 1}}, {"bias", false}}});
    return builder.add({.name = name + "_norm", .kind = "batch_norm", .inputs = {x}});
  };
  const auto relu = [&](const std::string& name, TensorId x) {
    return builder.add({.name = name, .kind = "relu", .inputs = {x}});
  };
  const auto sum = [&](const std::string& name, TensorId a, TensorId b) {
    return builder.add({.name = name, .kind = "add", .inputs = {a, b}});
  };
  const TensorId image = builder.input("input", {{channels, 6, 5}});
  const TensorId labels = builder.label("labels", {{}, ElementType::index});
  const TensorId a = relu("a_relu", sum("a_sum", conv_norm("a", image), image));
  TensorId x = relu("b_relu", conv_norm("b", a));
  x = relu("c_relu", sum("c_sum", a, conv_norm("c", x)));
  const TensorId d = conv_norm("d", x);
  x = relu("e_relu", sum("e_sum", d, conv_norm("e", x)));
  const TensorId f = builder.add({.name = "f_norm", .kind = "batch_norm", .inputs = {x}});
  x = relu("f_relu", sum("f_sum", f, x));
  const TensorId gate = builder.add({.name = "gate", .kind = "multiply", .inputs = {x, x}});
  const TensorId g = relu("g_relu", sum("g_sum", conv_norm("g", gate), x));
  x = sum("h_sum", conv_norm("h", g), g);
  x = builder.add({.name = "mean", .kind = "global_average_pool", .inputs = {x}});
  builder.add({.name = "loss", .kind = "cross_entropy", .inputs = {x, labels}});
  return builder.build();
}

std::vector<std::string> absorbed_sums(const StageGraph& stage, const CompileOptions& options, bool copies = false) {
  onednn::OnednnFactory factory(stage, options, nullptr, copies);
  std::vector<std::string> names;
  for (const OpId op : stage.ops) {
    if (stage.graph->op(op).schema->name == "add" && factory.absorbed(op)) names.push_back(stage.graph->op(op).name);
  }
  return names;
}

TEST(OnednnBatchNorm, DoesTheSumAndReluBehindIt) {
  const Graph graph = residual_blocks(16);
  CompileOptions options;
  options.rows = 2;
  const StageGraph inner = part_of(graph, 1, static_cast<OpId>(graph.size()));
  EXPECT_THAT(absorbed_sums(inner, options), ElementsAre("c_sum", "e_sum", "f_sum", "g_sum"));
  EXPECT_THAT(absorbed_sums(whole_stage(graph), options, true), IsEmpty()) << "kernels that get copies";
  options.plain = true;
  EXPECT_THAT(absorbed_sums(whole_stage(graph), options), IsEmpty());
}

TEST(OnednnBatchNorm, SumsAsReference) {
  for (const std::int64_t channels : {16, 20, 3}) {
    SCOPED_TRACE(channels);
    const Graph graph = residual_blocks(channels);
    expect_stage_as_reference(whole_stage(graph), {.rows = 5, .valid_rows = 3, .slots = 2});
    expect_stage_as_reference(whole_stage(graph), {.rows = 2, .valid_rows = 2, .slots = 2, .split = true});
    expect_stage_as_reference(whole_stage(graph), {.rows = 2, .valid_rows = 2, .training = false});
    expect_stage_as_reference(whole_stage(graph), {.rows = 3, .valid_rows = 3, .recompute = {5, 6, 7, 8, 9, 10}});
  }
}

TEST(OnednnBatchNorm, SumsHaveTheBitsOfSeparateKernels) {
  const Graph graph = residual_blocks(16);
  CompileOptions options;
  for (const Operator& op : graph.operators()) {
    if (op.schema->name == "add") options.recompute.push_back(graph.tensor(op.outputs[0]).producer);
  }
  ASSERT_THAT(absorbed_sums(whole_stage(graph), options), IsEmpty());
  const auto device = make_onednn_device();
  const StageRun joint = run_stage(whole_stage(graph), *device, Precision::fp32, {.rows = 3, .valid_rows = 3});
  const StageRun apart = run_stage(whole_stage(graph), *device, Precision::fp32,
                                   {.rows = 3, .valid_rows = 3, .recompute = options.recompute});
  EXPECT_EQ(joint.outputs, apart.outputs);
  EXPECT_EQ(joint.parameter_gradients, apart.parameter_gradients);
}

TEST(OnednnBatchNorm, SumsCutAnywhere) {
  const Graph graph = residual_blocks(16);
  for (OpId cut = 1; cut < graph.size(); ++cut) {
    SCOPED_TRACE(graph.op(cut).name);
    expect_stage_as_reference(part_of(graph, cut, static_cast<OpId>(graph.size())), {.rows = 3, .valid_rows = 3});
    expect_stage_as_reference(part_of(graph, 0, cut), {.rows = 3, .valid_rows = 3});
  }
}

TEST(OnednnBatchNorm, VarianceOfNumbersFarFromZero) {
  constexpr std::int64_t kRows = 3, kChannels = 16, kPlaces = 50 * 40;
  GraphBuilder builder("norm");
  const TensorId image = builder.input("input", {{kChannels, 50, 40}});
  const TensorId labels = builder.label("labels", {{}, ElementType::index});
  TensorId x = builder.add({.name = "norm", .kind = "batch_norm", .inputs = {image}});
  x = builder.add({.name = "mean", .kind = "global_average_pool", .inputs = {x}});
  builder.add({.name = "loss", .kind = "cross_entropy", .inputs = {x, labels}});
  const Graph graph = builder.build();
  const TensorId variance = graph.op(0).buffers[1];
  // The rows' means: alike and far from zero, ever further, and an outlier first.
  const std::vector<std::vector<double>> offsets{{1000, 1000, 1000}, {0, 100, 200}, {3000, 0, 0}};
  for (const std::vector<double>& means : offsets) {
    const auto device = make_onednn_device();
    PreparedStage prepared(whole_stage(graph), *device, Precision::fp32, {.rows = kRows, .valid_rows = kRows});
    auto* const values = static_cast<float*>(prepared.executable->input(0, image));
    double sum = 0;
    double squares = 0;
    for (std::int64_t row = 0; row < kRows; ++row) {
      for (std::int64_t i = 0; i < kChannels * kPlaces; ++i) {
        float& value = values[row * kChannels * kPlaces + i];
        value = static_cast<float>(value + means[static_cast<std::size_t>(row)]);
        if (i >= kPlaces) continue;
        sum += value;
        squares += static_cast<double>(value) * value;
      }
    }
    prepared.forward(0);
    const double count = kRows * kPlaces;
    const double expected = (squares - sum * sum / count) / (count - 1) * kRows * 0.125;
    const double found = static_cast<const float*>(prepared.parameters.gradient(variance))[0];
    EXPECT_NEAR(found / expected, 1, 1e-6) << means[0];
  }
}

}  // namespace
}  // namespace millrace::kernels::testing
