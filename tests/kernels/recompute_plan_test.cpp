// What is dropped comes back before it is read, no more than is needed, and the rest of the stage does not notice.
#include "kernels/recompute_plan.h"

#include <gmock/gmock.h>

#include "graph/graph_builder.h"
#include "kernels/device.h"
#include "tests/kernels/small_networks.h"
#include "tests/kernels/typed_memory.h"

namespace millrace::kernels::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Two blocks of convolution, batch norm and ReLU, the second with a way around it; each block is a layer.
Graph image_network() {
  GraphBuilder builder("blocks");
  TensorId x = builder.input("x", {{3, 6, 6}, ElementType::real, true});
  const TensorId label = builder.label("label", {{}, ElementType::index, true});
  for (const std::string layer : {"one", "two"}) {
    const TensorId before = x;
    x = builder.add({.name = layer + ".conv",
                     .kind = "conv2d",
                     .inputs = {x},
                     .attributes = {{"out_channels", std::int64_t{8}},
                                    {"kernel", std::vector<std::int64_t>{3, 3}},
                                    {"padding", std::vector<std::int64_t>{1, 1}},
                                    {"bias", false}},
                     .layer = layer});
    x = builder.add({.name = layer + ".norm", .kind = "batch_norm", .inputs = {x}, .layer = layer});
    if (layer == "two") x = builder.add({.name = layer + ".add", .kind = "add", .inputs = {x, before}, .layer = layer});
    x = builder.add({.name = layer + ".relu", .kind = "relu", .inputs = {x}, .layer = layer});
  }
  x = builder.add({.name = "pool", .kind = "global_average_pool", .inputs = {x}});
  x = builder.add({.name = "head", .kind = "linear", .inputs = {x}, .attributes = {{"out_features", std::int64_t{6}}}});
  builder.add({.name = "loss", .kind = "cross_entropy", .inputs = {x, label}});
  return builder.build();
}

struct Whole {
  explicit Whole(Graph of = skip_network(true)) : graph(std::move(of)) {}

  Graph graph;
  StageGraph stage = make_stage_graph(graph, ops());
  GradientFlow flow = gradient_flow(stage);

  std::vector<OpId> ops() const {
    std::vector<OpId> all;
    for (OpId op = 0; op < graph.size(); ++op) all.push_back(op);
    return all;
  }
  RecomputePlan plan(std::vector<OpId> recompute) const {
    return plan_recompute(stage, flow, recompute, std::vector<bool>(stage.ops.size()));
  }
};

TEST(RecomputePlan, NothingIsDroppedWithoutAMask) {
  const RecomputePlan plan = Whole().plan({});
  EXPECT_TRUE(plan.dropped.empty());
  for (const auto& list : plan.before) EXPECT_THAT(list, IsEmpty());
  EXPECT_THAT(plan.first, IsEmpty());
}

// a linear, b relu, c linear, d add, e multiply, f layer norm, g dropout, h linear, loss. Backward reads the output of
// b and the inputs of c, e, f, h and the loss.
TEST(RecomputePlan, WhatOthersReadStaysAndSoNothingRunsAgain) {
  const RecomputePlan plan = Whole().plan({1});
  EXPECT_TRUE(plan.dropped.empty());
  EXPECT_THAT(plan.first, IsEmpty());
}

TEST(RecomputePlan, SegmentsRunAgainBeforeTheirBackward) {
  const Whole whole(image_network());
  const std::size_t second = 4;  // conv, norm, relu; conv, norm, add, relu; pool, head, loss
  const RecomputePlan plan = whole.plan({0, 1, 2, 3, 4, 5, 6});
  // The first ReLU's output is read by the second segment: it stays, and nothing that only it would need runs again.
  EXPECT_THAT(plan.first, ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(plan.before[2], ElementsAre(0));
  EXPECT_EQ(plan.dropped.size(), 5U);
  EXPECT_TRUE(plan.dropped.contains(whole.graph.op(static_cast<OpId>(second)).inputs[0]));
}

struct MaskCase {
  const char* device;
  bool images;
  bool split;
};

// Two micro-batches through a stage that recomputes `mask`: gradients and deposited statistics.
std::vector<double> gradients(const Whole& whole, const MaskCase& c, std::uint32_t mask) {
  std::vector<TensorId> order = whole.stage.parameters;
  order.insert(order.end(), whole.stage.buffers.begin(), whole.stage.buffers.end());
  StageParameters parameters(whole.stage, order, Precision::fp32);
  parameters.initialize(3);
  CompileOptions options;
  options.rows = 4;
  options.slots = 2;
  options.split_backward = c.split;
  for (OpId op = 0; op < whole.graph.size(); ++op) {
    if ((mask >> static_cast<unsigned>(op)) % 2 == 1) options.recompute.push_back(op);
  }
  const auto executable = make_device(c.device, Precision::fp32)->compile(whole.stage, parameters, options);
  const auto count = 4 * whole.graph.tensor(whole.graph.inputs()[0]).shape.elements_per_sample();
  for (const int slot : {0, 1}) {
    std::vector<double> x;
    for (int i = 0; i < count; ++i) x.push_back(static_cast<float>(0.1 * ((i * 7 + slot * 5) % 23) - 1));
    write(executable->input(slot, whole.graph.inputs()[0]), x, Precision::fp32);
    write_indices(executable->input(slot, whole.graph.labels()[0]), {0, 1, 2, 3});
    const std::vector<std::int64_t> samples{4 * slot, 4 * slot + 1, 4 * slot + 2, 4 * slot + 3};
    executable->forward(slot, BatchContext{0, samples, 4, 0.125});
    write(executable->output_gradient(slot, whole.graph.op(whole.graph.loss()).outputs[0]),
          {0.125, 0.125, 0.125, 0.125}, Precision::fp32);
  }
  for (const int slot : {1, 0}) {
    if (slot == 1) executable->recompute(slot);  // may be left out
    if (c.split) {
      executable->backward_input(slot);
    } else {
      executable->backward(slot);
    }
  }
  for (const int slot : {0, 1}) {
    if (c.split) executable->backward_weight(slot);
  }
  parameters.combine_uses();
  return read(parameters.gradient_range(0), parameters.range_elements(0, order.size()), Precision::fp32);
}

TEST(RecomputePlan, AnyMaskChangesNoBit) {
  for (const MaskCase& c :
       {MaskCase{"reference", false, false}, MaskCase{"reference", false, true}, MaskCase{"reference", true, false},
        MaskCase{"reference", true, true}, MaskCase{"onednn", true, false}, MaskCase{"onednn", true, true}}) {
    const Whole whole(c.images ? image_network() : skip_network(true));
    const std::vector<double> expected = gradients(whole, c, 0);
    const std::uint32_t all = (1U << static_cast<unsigned>(whole.graph.size())) - 1;
    EXPECT_EQ(gradients(whole, c, all), expected) << c.device << c.images << c.split;
    for (std::uint32_t mask = 1; mask < all; mask += c.images ? 83 : 7) {
      ASSERT_EQ(gradients(whole, c, mask), expected) << c.device << c.images << c.split << " mask " << mask;
    }
  }
}

TEST(RecomputePlan, SlotsOfARecomputedStageKeepItsBorderAlone) {
  const Whole whole;
  StageParameters parameters(whole.stage, whole.stage.parameters, Precision::fp32);
  CompileOptions options;
  options.rows = 64;
  const auto device = make_device("reference", Precision::fp32);
  const std::int64_t kept = device->compile(whole.stage, parameters, options)->bytes().per_slot;
  options.recompute = whole.ops();
  EXPECT_LT(device->compile(whole.stage, parameters, options)->bytes().per_slot, kept);
}

}  // namespace
}  // namespace millrace::kernels::testing
