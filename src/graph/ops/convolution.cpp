// conv2d: cross-correlation of [C, H, W] with weight [O, C, kh, kw], as PyTorch's.
#include <cmath>

#include "graph/ops/ops.h"
#include "graph/ops/shape_rules.h"

namespace millrace::ops {
namespace {

Inference infer(const Attributes& attributes, std::span<const TensorShape> inputs) {
  const Dims& dims = real_dims(inputs, 0);
  if (dims.size() != 3) refuse_input(0, inputs[0], "[channels, height, width]");
  const std::int64_t out = integer_at_least(attributes, "out_channels", 1);
  const auto kernel = height_width(attributes, "kernel", 1);
  const auto output = window_output(attributes, dims);
  const double fan_in = static_cast<double>(dims[0]) * static_cast<double>(kernel[0] * kernel[1]);
  const Initializer start{Initializer::Kind::uniform, 1.0 / std::sqrt(fan_in)};
  Inference result{.outputs = {activation({out, output[0], output[1]})}};
  result.parameters.push_back({"weight", {out, dims[0], kernel[0], kernel[1]}, start});
  if (attributes.boolean("bias")) result.parameters.push_back({"bias", {out}, start});
  return result;
}

OpFlops flops(const Attributes&, const OperandShapes& shapes) {
  const Dims& weight = shapes.parameters[0];
  const double taps = static_cast<double>(weight[1]) * static_cast<double>(weight[2] * weight[3]);
  const double product = 2.0 * elements(shapes.outputs[0]) * taps;
  return {product, product, product};
}

// Height and width are not split: that needs a halo exchange, which is not offered (METHODS 7).
Letters letters(const Attributes& attributes, const OperandShapes&) {
  Letters result{.inputs = {"ncHW"}, .parameters = {"ocKL"}, .outputs = {"noPQ"}};
  if (attributes.boolean("bias")) result.parameters.emplace_back("o");
  return result;
}

Saved saved(const Attributes&, const OperandShapes&) {
  return {.inputs = {0}, .parameters = {0}, .input_gradient_needs_only_parameters = true};
}

}  // namespace

OpSchema conv2d() {
  const Attribute one = std::vector<std::int64_t>{1, 1};
  const Attribute none = std::vector<std::int64_t>{0, 0};
  return {.name = "conv2d",
          .text = "two-dimensional convolution with stride and padding",
          .attributes = {{"out_channels", std::nullopt},
                         {"kernel", std::nullopt},
                         {"stride", one},
                         {"padding", none},
                         {"bias", Attribute(true)}},
          .infer = infer,
          .flops = flops,
          .letters = letters,
          .saved = saved};
}

}  // namespace millrace::ops
