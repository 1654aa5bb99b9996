// Parameters of a stage: starting values, storage order, accumulators of tied weights.
#include "kernels/stage_parameters.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <gmock/gmock.h>

#include "graph/graph_builder.h"
#include "tests/kernels/small_networks.h"
#include "tests/kernels/typed_memory.h"

namespace millrace::kernels::testing {
namespace {

class SkipNetworkParameters : public ::testing::Test {
 protected:
  std::vector<double> values(StageParameters& parameters, const char* name) const {
    const TensorId tensor = graph.find_tensor(name);
    return read(parameters.value(tensor), parameters.elements(tensor), Precision::fp64);
  }

  Graph graph = skip_network(false);
  std::vector<OpId> ops = [this] {
    std::vector<OpId> all;
    for (OpId op = 0; op < graph.size(); ++op) all.push_back(op);
    return all;
  }();
  StageGraph stage = make_stage_graph(graph, ops);
};

TEST_F(SkipNetworkParameters, InitialValuesDependOnSeedAndNameAlone) {
  StageParameters whole(stage, stage.parameters, Precision::fp64);
  whole.initialize(5);
  const StageGraph last = make_stage_graph(graph, std::span(ops).last(3));
  std::vector<TensorId> backwards(last.parameters.rbegin(), last.parameters.rend());
  StageParameters part(last, backwards, Precision::fp64);
  part.initialize(5);
  EXPECT_EQ(values(whole, "h.bias"), values(part, "h.bias"));
  EXPECT_EQ(values(whole, "c.weight"), values(part, "c.weight"));
  EXPECT_NE(values(whole, "a.weight"), values(whole, "c.weight"));
  part.initialize(6);
  EXPECT_NE(values(whole, "h.bias"), values(part, "h.bias"));
}

TEST_F(SkipNetworkParameters, LinearStartsUniformWithinOneOverRootOfItsInputs) {
  StageParameters parameters(stage, stage.parameters, Precision::fp64);
  parameters.initialize(5);
  const std::vector<double> weight = values(parameters, "a.weight");
  const double half = 1 / std::sqrt(6.0);
  EXPECT_THAT(weight, ::testing::Each(::testing::AllOf(::testing::Gt(-half), ::testing::Lt(half))));
  EXPECT_GT(*std::max_element(weight.begin(), weight.end()), half / 2);
  EXPECT_LT(*std::min_element(weight.begin(), weight.end()), -half / 2);
  EXPECT_THAT(values(parameters, "f.weight"), ::testing::Each(1.0));
  EXPECT_THAT(values(parameters, "f.bias"), ::testing::Each(0.0));
}

TEST_F(SkipNetworkParameters, RangesAreContiguousInTheGivenOrder) {
  std::vector<TensorId> order(stage.parameters.rbegin(), stage.parameters.rend());
  StageParameters parameters(stage, order, Precision::fp32);
  EXPECT_EQ(parameters.range_elements(0, order.size()), graph.parameter_count());
  EXPECT_EQ(parameters.value_bytes(), graph.parameter_count() * 4);
  EXPECT_EQ(parameters.gradient_bytes(), (graph.parameter_count() + 36) * 4);  // c.weight has two uses
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    EXPECT_EQ(static_cast<float*>(parameters.value_range(i)) + parameters.elements(order[i]),
              parameters.value_range(i + 1));
    EXPECT_EQ(static_cast<float*>(parameters.gradient_range(i)) + parameters.elements(order[i]),
              parameters.gradient_range(i + 1));
  }
}

TEST_F(SkipNetworkParameters, UsesOfATiedParameterAreCombinedOnce) {
  StageParameters parameters(stage, stage.parameters, Precision::fp64);
  const TensorId tied = graph.find_tensor("c.weight");
  const OpId first = graph.find_op("c");
  const OpId second = graph.find_op("h");
  ASSERT_NE(parameters.gradient(tied, first), parameters.gradient(tied, second));
  parameters.zero_gradients();
  static_cast<double*>(parameters.gradient(tied, first))[7] = 1;
  static_cast<double*>(parameters.gradient(tied, second))[7] = 2;
  parameters.combine_uses();
  parameters.combine_uses();
  EXPECT_EQ(static_cast<double*>(parameters.gradient(tied))[7], 3);
  parameters.zero_gradients();
  EXPECT_EQ(static_cast<double*>(parameters.gradient(tied))[7], 0);
  EXPECT_THROW(parameters.gradient(tied, graph.find_op("a")), std::logic_error);
}

TEST_F(SkipNetworkParameters, WhatLiesInAnEmptyAccumulatorIsNothing) {
  StageParameters parameters(stage, stage.parameters, Precision::fp64);
  const TensorId tied = graph.find_tensor("c.weight");
  const TensorId other = graph.find_tensor("a.weight");
  const OpId first = graph.find_op("c"), second = graph.find_op("h");
  for (const TensorId tensor : {tied, other}) static_cast<double*>(parameters.gradient(tensor))[7] = NAN;
  static_cast<double*>(parameters.gradient(tied, second))[7] = NAN;
  parameters.combine_uses();
  for (const TensorId tensor : {tied, other}) EXPECT_EQ(static_cast<double*>(parameters.gradient(tensor))[7], 0);

  for (int step = 0; step < 2; ++step) {  // of the uses only the second contributes
    parameters.discard_gradients();
    static_cast<double*>(parameters.gradient(tied, first))[7] = NAN;
    EXPECT_TRUE(parameters.is_empty(parameters.accumulator(tied, second)));
    static_cast<double*>(parameters.gradient(tied, second))[7] = 2;
    parameters.overwritten(parameters.accumulator(tied, second));
    parameters.prepare(parameters.accumulator(tied, second));  // no longer empty: nothing is zeroed
    parameters.combine_uses();
    EXPECT_EQ(static_cast<double*>(parameters.gradient(tied))[7], 2);
  }
}

TEST_F(SkipNetworkParameters, AnOrderThatMissesOneIsRefused) {
  std::vector<TensorId> order = stage.parameters;
  order.pop_back();
  EXPECT_THROW(StageParameters(stage, order, Precision::fp32), std::logic_error);
}

}  // namespace
}  // namespace millrace::kernels::testing
