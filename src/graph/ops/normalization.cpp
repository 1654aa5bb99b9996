// batch_norm over the samples of a micro-batch (and positions) and layer_norm over the last axis, both scaled and
// shifted.
#include <fmt/format.h>

#include "graph/ops/ops.h"
#include "graph/ops/shape_rules.h"

namespace millrace::ops {
namespace {

constexpr Initializer kZeros{Initializer::Kind::zeros};
constexpr Initializer kOnes{Initializer::Kind::ones};

// Multiply-adds of an element: mean, variance, normalise and scale; in backward two sums and the combination.
constexpr double kForwardFlops = 7.0;
constexpr double kBackwardInputFlops = 8.0;
constexpr double kBackwardWeightFlops = 3.0;

void check_epsilon(const Attributes& attributes) {
  const double epsilon = attributes.real("epsilon");
  if (!(epsilon > 0.0)) refuse("attribute 'epsilon'", fmt::format("{}", epsilon), "real above 0");
}

Inference infer_batch_norm(const Attributes& attributes, std::span<const TensorShape> inputs) {
  const Dims& dims = real_dims(inputs, 0);
  if (dims.size() != 1 && dims.size() != 3) refuse_input(0, inputs[0], "[channels] or [channels, height, width]");
  check_epsilon(attributes);
  const double momentum = attributes.real("momentum");
  if (!(momentum >= 0.0 && momentum <= 1.0)) {
    refuse("attribute 'momentum'", fmt::format("{}", momentum), "real from 0 to 1");
  }
  const Dims channels{dims[0]};
  return {.outputs = {activation(dims)},
          .parameters = {{"weight", channels, kOnes}, {"bias", channels, kZeros}},
          .buffers = {{"running_mean", channels, kZeros}, {"running_var", channels, kOnes}}};
}

Inference infer_layer_norm(const Attributes& attributes, std::span<const TensorShape> inputs) {
  const Dims& dims = real_dims(inputs, 0);
  if (dims.empty()) refuse_input(0, inputs[0], "at least one dimension beside the batch axis");
  check_epsilon(attributes);
  const Dims width{dims.back()};
  return {.outputs = {activation(dims)}, .parameters = {{"weight", width, kOnes}, {"bias", width, kZeros}}};
}

OpFlops flops(const Attributes&, const OperandShapes& shapes) {
  const double count = elements(shapes.outputs[0]);
  return {kForwardFlops * count, kBackwardInputFlops * count, kBackwardWeightFlops * count};
}

// Statistics run over the positions of a channel, so these are not split; over samples they are local or synchronised.
Letters batch_norm_letters(const Attributes&, const OperandShapes& shapes) {
  const std::string x = shapes.inputs[0].dims.size() == 3 ? "ncHW" : "nc";
  return {.inputs = {x}, .parameters = {"c", "c"}, .outputs = {x}, .reduced = "n"};
}

Letters layer_norm_letters(const Attributes&, const OperandShapes& shapes) {
  const std::string x = batch_and_letters(shapes.inputs[0].dims.size() - 1) + "D";
  return {.inputs = {x}, .parameters = {"D", "D"}, .outputs = {x}};
}

// Mean and inverse deviation: of each channel for batch_norm, of each row for layer_norm.
Saved batch_norm_saved(const Attributes&, const OperandShapes& shapes) {
  return {.inputs = {0}, .parameters = {0}, .extra_reals_per_micro_batch = 2 * shapes.inputs[0].dims[0]};
}

Saved layer_norm_saved(const Attributes&, const OperandShapes& shapes) {
  const TensorShape& x = shapes.inputs[0];
  return {.inputs = {0}, .parameters = {0}, .extra_reals_per_sample = 2 * x.elements_per_sample() / x.dims.back()};
}

}  // namespace

OpSchema batch_norm() {
  return {.name = "batch_norm",
          .text = "normalises each channel over the micro-batch; keeps running statistics for evaluation",
          .attributes = {{"epsilon", Attribute(1e-5)}, {"momentum", Attribute(0.1)}},
          .infer = infer_batch_norm,
          .flops = flops,
          .letters = batch_norm_letters,
          .saved = batch_norm_saved};
}

OpSchema layer_norm() {
  return {.name = "layer_norm",
          .text = "normalises the last axis of each row",
          .attributes = {{"epsilon", Attribute(1e-5)}},
          .infer = infer_layer_norm,
          .flops = flops,
          .letters = layer_norm_letters,
          .saved = layer_norm_saved};
}

}  // namespace millrace::ops
