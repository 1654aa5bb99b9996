// Layers of large models: memory by the closed form of Korthikanti et al. 2022, times by counting operators.
#include "cost/transformer.h"

#include <gtest/gtest.h>

namespace millrace::cost {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

// Only products take time: one second an operation.
DeviceRates only_products() {
  DeviceRates rates;
  rates.matmul = {1, Seconds(0)};
  rates.memory = rates.attention = rates.fused_attention = {1e300, Seconds(0)};
  return rates;
}

const Transformer kSmall{2, 8, 2, 32, 4, 16};
const Transformer kGpt22B{48, 6144, 64, 24576, 2048, 51200};

TEST(Layer, CountsTheOperationsOfItsProducts) {
  // 24·b·s·h² + 4·b·s²·h forwards, twice that backwards.
  const double tokens = 3 * 4;
  const double products = 24 * tokens * 64, scores = 4 * tokens * 4 * 8;
  const BlockCost cost = layer_cost(kSmall, {3, 1, false}, Recompute::full, {}, only_products());
  EXPECT_DOUBLE_EQ(cost.forward.compute.value(), products + scores);
  EXPECT_DOUBLE_EQ(cost.backward_input.compute.value(), products + 2 * scores);
  EXPECT_DOUBLE_EQ(cost.backward_weight.compute.value(), products);
  EXPECT_DOUBLE_EQ(cost.recompute.compute.value(), products + scores);
  EXPECT_EQ(cost.forward.collectives, 0);
}

TEST(Layer, TensorParallelDevicesShareProductsAndReduceTwiceAPass) {
  const BlockCost whole = layer_cost(kSmall, {1, 1, false}, Recompute::none, {}, only_products());
  const BlockCost half = layer_cost(kSmall, {1, 2, false}, Recompute::none, {}, only_products());
  EXPECT_DOUBLE_EQ(half.forward.compute.value(), whole.forward.compute.value() / 2);
  EXPECT_EQ(half.forward.collectives, 2);
  EXPECT_EQ(half.backward_input.collectives, 2);
  // A split sequence gathers the inputs of two products again.
  const BlockCost split = layer_cost(kSmall, {1, 2, true}, Recompute::none, {}, only_products());
  EXPECT_EQ(split.forward.collectives, 2);
  EXPECT_EQ(split.backward_input.collectives, 3);
}

TEST(Layer, SelectiveRecomputationIsTheScoresAlone) {
  const BlockCost cost = layer_cost(kSmall, {1, 1, false}, Recompute::selective, {}, only_products());
  EXPECT_DOUBLE_EQ(cost.recompute.compute.value(), 4 * 4 * 4 * 8);
  Software fused;
  fused.fused_attention = true;
  EXPECT_EQ(layer_cost(kSmall, {1, 1, false}, Recompute::selective, fused, only_products()).recompute.operators, 0);
}

TEST(Layer, AddingToGradientsMovesBytesOfEveryParameter) {
  DeviceRates rates = only_products();
  rates.memory = {1, Seconds(0)};
  const double parameters = kSmall.layer_parameters();
  EXPECT_DOUBLE_EQ(parameters, 12 * 64);
  Software apart;
  apart.weight_gradient_bytes = 12;
  const Slice slice{1, 1, false};
  // Products of 4 tokens: 2 · 4 operations a parameter.
  EXPECT_DOUBLE_EQ(layer_cost(kSmall, slice, Recompute::none, {}, rates).backward_weight.compute.value(),
                   (8 + 8) * parameters);
  EXPECT_DOUBLE_EQ(layer_cost(kSmall, slice, Recompute::none, apart, rates).backward_weight.compute.value(),
                   (8 + 12) * parameters);
}

TEST(Layer, ActivationMemoryOfThePaper) {
  // Figure 1: GPT-22B on 8 devices, micro-batch 4, 48 layers: 59.25 GiB, 9.5625 GiB with both techniques.
  EXPECT_DOUBLE_EQ(48 * layer_activation_bytes(kGpt22B, {4, 8, false}, Recompute::none) / kGiB, 59.25);
  EXPECT_DOUBLE_EQ(48 * layer_activation_bytes(kGpt22B, {4, 8, true}, Recompute::selective) / kGiB, 9.5625);
  EXPECT_DOUBLE_EQ(layer_activation_bytes(kGpt22B, {4, 8, false}, Recompute::full), activation_bytes(kGpt22B, 4));
}

TEST(Head, CountsTheProductWithTheVocabulary) {
  const BlockCost cost = head_cost(kSmall, {1, 2, false}, only_products());
  EXPECT_DOUBLE_EQ(cost.forward.compute.value(), 2 * 4 * 8 * 8);
  EXPECT_DOUBLE_EQ(cost.backward_weight.compute.value(), 2 * 4 * 8 * 8);
  EXPECT_DOUBLE_EQ(kSmall.embedding_parameters(), 16 * 8);
}

}  // namespace
}  // namespace millrace::cost
