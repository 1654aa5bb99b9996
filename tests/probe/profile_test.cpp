// Profiles of real kernels are complete; how long they take is the machine's business.
#include "probe/operator_profile.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "models/registry.h"
#include "probe/device_speed.h"
#include "probe/processor.h"

namespace millrace::probe {
namespace {

ProfileOptions short_options() {
  ProfileOptions options;
  options.rows = {1, 3};
  options.time_of_size = Seconds(0);
  options.least_repetitions = 3;
  return options;
}

TEST(Profile, EveryOperatorPassAndSizeIsThere) {
  const Graph graph = models::make("lenet");
  const auto device = kernels::make_device("auto", kernels::Precision::fp32);
  int barriers = 0, steps = 0;
  ProfileOptions options = short_options();
  options.together = [&] { ++barriers; };
  const cost::Profile profile = profile_operators(
      graph, *device, options, [&](kernels::StageParameters&) { return [&](std::size_t) { ++steps; }; });
  EXPECT_EQ(profile.graph_digest, graph.digest());
  EXPECT_EQ(profile.kernels, device->name());
  EXPECT_EQ(profile.precision, "fp32");
  EXPECT_EQ(barriers, 3);                                             // two sizes and the steps
  EXPECT_EQ(steps, 4 * static_cast<int>(graph.parameters().size()));  // one warms up
  ASSERT_EQ(profile.sizes.size(), 2U);
  ASSERT_EQ(profile.operators.size(), graph.operators().size());
  for (const cost::MeasuredSize& size : profile.sizes) {
    EXPECT_EQ(size.repetitions, 3);
    EXPECT_GT(size.forward.median, 0_s);
    EXPECT_GT(size.backward.median, 0_s);
    EXPECT_GT(size.slot, Bytes(0));
    ASSERT_EQ(size.operators.size(), graph.operators().size());
    for (OpId op = 0; op < graph.size(); ++op) {
      const cost::MeasuredPasses& passes = size.operators[static_cast<std::size_t>(op)];
      EXPECT_GT(passes.forward.median, 0_s) << graph.op(op).name;
      const bool trained = !graph.op(op).parameters.empty();
      EXPECT_EQ(passes.backward_weight.median > Seconds(0), trained) << graph.op(op).name;
    }
  }
  std::int64_t bytes = 0;
  for (const cost::MeasuredOperator& op : profile.operators) bytes += op.parameters.value();
  EXPECT_EQ(bytes, graph.parameter_count() * 4);
}

TEST(Profile, ReferenceKernelsInDouble) {
  const Graph graph = models::make("mlp", {{"inputs", "8"}, {"hidden", "[8]"}, {"classes", "3"}});
  const auto device = kernels::make_device("reference", kernels::Precision::fp64);
  ProfileOptions options = short_options();
  options.rows = {2};
  options.precision = kernels::Precision::fp64;
  const cost::Profile profile =
      profile_operators(graph, *device, options, [](kernels::StageParameters&) { return [](std::size_t) {}; });
  EXPECT_EQ(profile.precision, "fp64");
  EXPECT_EQ(profile.sizes.front().operators.size(), graph.operators().size());
}

// Readers in two other stages give their gradients to one tensor, and messages pass stages by.
TEST(NetworkSample, StagesComputeTheGradientsOfTheWhole) {
  const Graph graph = models::make("resnet", {{"blocks", "[1, 1]"}, {"width", "4"}, {"image", "8"}, {"classes", "3"}});
  const auto device = kernels::make_device("reference", kernels::Precision::fp64);
  Stages stages;
  for (OpId op = 0; op < graph.size(); ++op) stages.push_back({op});
  NetworkSample whole(graph, *device, kernels::Precision::fp64, 1);
  NetworkSample cut(graph, *device, kernels::Precision::fp64, 1, stages);
  std::vector<double> gradients[2];
  for (NetworkSample* sample : {&whole, &cut}) {
    sample->compile(3);
    sample->forward();
    sample->backward();
    const auto& order = sample->parameters().order();
    const double* values = static_cast<const double*>(sample->parameters().gradient_range(0));
    auto& to = gradients[sample == &whole ? 0 : 1];
    to.assign(values, values + sample->parameters().range_elements(0, order.size()));
  }
  EXPECT_EQ(gradients[0], gradients[1]);
  EXPECT_GT(*std::max_element(gradients[0].begin(), gradients[0].end()), 0);
}

TEST(Profile, OperatorsOfStages) {
  const Graph graph = models::make("mlp", {{"inputs", "8"}, {"hidden", "[8]"}, {"classes", "3"}});
  const auto device = kernels::make_device("reference", kernels::Precision::fp32);
  ProfileOptions options = short_options();
  options.stages = {{0}, {1, 2, 3}};
  const cost::Profile profile =
      profile_operators(graph, *device, options, [](kernels::StageParameters&) { return [](std::size_t) {}; });
  ASSERT_EQ(profile.sizes.back().operators.size(), 4U);
  for (const cost::MeasuredPasses& passes : profile.sizes.back().operators) EXPECT_GT(passes.forward.median, 0_s);
}

TEST(DeviceSpeed, TakesSomeTime) {
  const auto device = kernels::make_device("auto", kernels::Precision::fp32);
  EXPECT_GT(measure_dense_network(*device, kernels::Precision::fp32, Seconds(0.001)), 0_s);
}

TEST(Processor, HasAName) { EXPECT_NE(processor_name(), ""); }

}  // namespace
}  // namespace millrace::probe
