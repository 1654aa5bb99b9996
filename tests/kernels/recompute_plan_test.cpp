// What is dropped comes back before it is read, no more than is needed, and the rest of the stage does not notice.
#include "kernels/recompute_plan.h"

#include <gmock/gmock.h>

#include "kernels/device.h"
#include "tests/kernels/small_networks.h"
#include "tests/kernels/typed_memory.h"

namespace millrace::kernels::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Operators: a linear, b relu, c linear, add, multiply, layer norm, dropout, f linear, loss (each a segment of its
// own).
struct Whole {
  Graph graph = skip_network(true);
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
}

TEST(RecomputePlan, AnOperatorRunsAgainRightBeforeItsOwnBackward) {
  const Whole whole;
  const std::size_t relu = 1;  // keeps its output, which others read: it stays where they are not recomputed too
  ASSERT_EQ(whole.graph.op(static_cast<OpId>(relu)).schema->name, "relu");
  EXPECT_THAT(whole.plan({static_cast<OpId>(relu)}).before[relu], IsEmpty());
}

// Every mask gives the bits of none.
TEST(RecomputePlan, AnyMaskChangesNoBit) {
  for (const bool split : {false, true}) {
    std::vector<double> expected;
    const Whole whole;
    for (std::uint32_t mask = 0; mask < (1U << whole.graph.size()); mask += mask == 0 ? 1 : 7) {
      StageParameters parameters(whole.stage, whole.stage.parameters, Precision::fp32);
      parameters.initialize(3);
      CompileOptions options;
      options.rows = 4;
      options.slots = 2;
      options.split_backward = split;
      for (OpId op = 0; op < whole.graph.size(); ++op) {
        if ((mask >> static_cast<unsigned>(op)) % 2 == 1) options.recompute.push_back(op);
      }
      const auto executable = make_device("reference", Precision::fp32)->compile(whole.stage, parameters, options);
      for (const int slot : {0, 1}) {
        std::vector<double> x;
        for (int i = 0; i < 24; ++i) x.push_back(static_cast<float>(0.1 * ((i * 7 + slot * 5) % 23) - 1));
        write(executable->input(slot, whole.graph.inputs()[0]), x, Precision::fp32);
        write_indices(executable->input(slot, whole.graph.labels()[0]), {0, 1, 2, 3});
        const std::vector<std::int64_t> samples{4 * slot, 4 * slot + 1, 4 * slot + 2, 4 * slot + 3};
        executable->forward(slot, BatchContext{0, samples, 4, 0.125});
        write(executable->output_gradient(slot, whole.graph.op(whole.graph.loss()).outputs[0]),
              {0.125, 0.125, 0.125, 0.125}, Precision::fp32);
      }
      for (const int slot : {1, 0}) {
        if (slot == 1) executable->recompute(slot);  // may be left out
        if (split) {
          executable->backward_input(slot);
        } else {
          executable->backward(slot);
        }
      }
      for (const int slot : {0, 1}) {
        if (split) executable->backward_weight(slot);
      }
      parameters.combine_uses();
      const std::vector<double> gradients =
          read(parameters.gradient_range(0), parameters.range_elements(0, parameters.order().size()), Precision::fp32);
      if (mask == 0) expected = gradients;
      ASSERT_EQ(gradients, expected) << "mask " << mask;
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
