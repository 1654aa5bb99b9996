// The emulated device: kernels take the model's time, tensors do not exist, parameters are counted and not allocated.
#include "kernels/emulated/emulated_device.h"

#include <numeric>

#include <gtest/gtest.h>

#include "tests/kernels/counting_allocator.h"
#include "tests/kernels/small_networks.h"

namespace millrace::kernels::testing {
namespace {

EmulatedModel model() {
  EmulatedModel model;
  model.time = [](Work work, std::span<const OpId> ops, std::int64_t rows) {
    const double each = work == Work::forward ? 1e-6 : work == Work::backward ? 2e-6 : 1.5e-6;
    return Seconds(each * static_cast<double>(ops.size()) * static_cast<double>(rows));
  };
  model.bytes = [](const StageGraph&, std::int64_t rows, std::span<const OpId>) {
    return ExecutableBytes{rows << 40, 1 << 20, 0};
  };
  model.update = [](Bytes values) { return Seconds(1e-9 * static_cast<double>(values.value())); };
  return model;
}

std::vector<OpId> all_ops(const Graph& graph) {
  std::vector<OpId> ops(static_cast<std::size_t>(graph.size()));
  std::iota(ops.begin(), ops.end(), 0);
  return ops;
}

TEST(EmulatedDevice, KernelsTakeTheTimeOfTheModel) {
  const Graph graph = skip_network(true);
  const StageGraph stage = make_stage_graph(graph, all_ops(graph));
  const auto ops = static_cast<double>(stage.ops.size());
  VirtualClock clock(1e-3);  // quicker than the model
  const auto device = make_emulated_device(model(), clock);
  StageParameters parameters(stage, stage.parameters, Precision::fp32, device->storage());
  const auto executable = device->compile(stage, parameters, {.rows = 4, .slots = 2});
  clock.start();
  executable->forward(0, {});
  EXPECT_NEAR(clock.now().value(), 4e-6 * ops, 1e-12);
  executable->backward(0);
  EXPECT_NEAR(clock.now().value(), 12e-6 * ops, 1e-12);
  executable->backward_input(1);
  executable->backward_weight(1);
  EXPECT_NEAR(clock.now().value(), 24e-6 * ops, 1e-12);
  device->updated(Bytes(1000));
  EXPECT_NEAR(clock.now().value(), 24e-6 * ops + 1e-6, 1e-12);
}

// Whatever was asked for before: a stage that defers weight gradients may begin with some of them.
TEST(EmulatedDevice, WeightGradientsOfSomeOperatorsTakeTheirPart) {
  const Graph graph = skip_network(false);
  const StageGraph stage = make_stage_graph(graph, all_ops(graph));
  VirtualClock clock(1e-3);
  const auto device = make_emulated_device(model(), clock);
  StageParameters parameters(stage, stage.parameters, Precision::fp32, device->storage());
  const auto executable = device->compile(stage, parameters, {.rows = 4, .slots = 1, .split_backward = true});
  clock.start();
  executable->backward_weight_of(0, std::span(stage.ops).subspan(1, 2));
  EXPECT_NEAR(clock.now().value(), 2 * 6e-6, 1e-12);
  executable->backward_weight_of(0, {});
  EXPECT_NEAR(clock.now().value(), 2 * 6e-6, 1e-12);
}

TEST(EmulatedDevice, NothingIsAllocatedForTensors) {
  const Graph graph = skip_network(false);
  const StageGraph stage = make_stage_graph(graph, all_ops(graph));
  VirtualClock clock(1.0);
  const auto device = make_emulated_device(model(), clock);
  const std::int64_t before = allocations().aligned_bytes;
  StageParameters parameters(stage, stage.parameters, Precision::fp32, device->storage());
  const auto executable = device->compile(stage, parameters, {.rows = 8, .slots = 3});
  EXPECT_EQ(allocations().aligned_bytes, before);
  EXPECT_EQ(executable->bytes().per_slot, std::int64_t{8} << 40);  // as the model says
  EXPECT_EQ(executable->bytes().slots, 3);
  EXPECT_EQ(executable->input(0, graph.inputs()[0]), nullptr);

  parameters.initialize(1);
  parameters.zero_gradients();
  parameters.combine_uses();
  EXPECT_EQ(parameters.gradient_range(0), nullptr);
  EXPECT_EQ(parameters.value(stage.parameters.front()), nullptr);
  const StageParameters real(stage, stage.parameters, Precision::fp32);
  EXPECT_EQ(parameters.value_bytes(), real.value_bytes());
  EXPECT_EQ(parameters.gradient_bytes(), real.gradient_bytes());
}

}  // namespace
}  // namespace millrace::kernels::testing
