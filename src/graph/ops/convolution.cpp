// Cross-correlations of [C, H, W], as PyTorch's: conv2d with weight [O, C, kh, kw], depthwise_conv2d (each channel
// alone) with [C, 1, kh, kw], and conv_transpose2d, the adjoint of conv2d, with [C, O, kh, kw].
#include <array>
#include <cmath>

#include "graph/ops/ops.h"
#include "graph/ops/shape_rules.h"

namespace millrace::ops {
namespace {

const Dims& image_dims(std::span<const TensorShape> inputs) {
  const Dims& dims = real_dims(inputs, 0);
  if (dims.size() != 3) refuse_input(0, inputs[0], "[channels, height, width]");
  return dims;
}

/// Output of `out` channels, and weights of these dimensions that start as PyTorch's: uniform by the weights that meet
/// in dimensions 1 to 3.
Inference with_weight(const Attributes& attributes, std::int64_t out, const std::array<std::int64_t, 2>& output,
                      const Dims& weight) {
  const double fan_in = static_cast<double>(weight[1]) * static_cast<double>(weight[2] * weight[3]);
  const Initializer start{Initializer::Kind::uniform, 1.0 / std::sqrt(fan_in)};
  Inference result{.outputs = {activation({out, output[0], output[1]})}};
  result.parameters.push_back({"weight", weight, start});
  if (attributes.boolean("bias")) result.parameters.push_back({"bias", {out}, start});
  return result;
}

Inference infer(const Attributes& attributes, std::span<const TensorShape> inputs) {
  const Dims& dims = image_dims(inputs);
  const std::int64_t out = integer_at_least(attributes, "out_channels", 1);
  const auto kernel = height_width(attributes, "kernel", 1);
  return with_weight(attributes, out, window_output(attributes, dims), {out, dims[0], kernel[0], kernel[1]});
}

Inference infer_depthwise(const Attributes& attributes, std::span<const TensorShape> inputs) {
  const Dims& dims = image_dims(inputs);
  const auto kernel = height_width(attributes, "kernel", 1);
  return with_weight(attributes, dims[0], window_output(attributes, dims), {dims[0], 1, kernel[0], kernel[1]});
}

Inference infer_transpose(const Attributes& attributes, std::span<const TensorShape> inputs) {
  const Dims& dims = image_dims(inputs);
  const std::int64_t out = integer_at_least(attributes, "out_channels", 1);
  const auto kernel = height_width(attributes, "kernel", 1);
  const auto stride = height_width(attributes, "stride", 1);
  const auto padding = height_width(attributes, "padding", 0);
  std::array<std::int64_t, 2> output{};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    output[axis] = (dims[axis + 1] - 1) * stride[axis] + kernel[axis] - 2 * padding[axis];
    if (output[axis] < 1) {
      refuse("attribute 'padding'", format(attributes.integers("padding")), "less than what leaves a pixel");
    }
  }
  return with_weight(attributes, out, output, {dims[0], out, kernel[0], kernel[1]});
}

OpFlops flops(const Attributes&, const OperandShapes& shapes) {
  const Dims& weight = shapes.parameters[0];
  const double taps = static_cast<double>(weight[1]) * static_cast<double>(weight[2] * weight[3]);
  const double product = 2.0 * elements(shapes.outputs[0]) * taps;
  return {product, product, product};
}

// Every input pixel meets all taps of all output channels.
OpFlops transpose_flops(const Attributes&, const OperandShapes& shapes) {
  const Dims& weight = shapes.parameters[0];
  const double taps = static_cast<double>(weight[1]) * static_cast<double>(weight[2] * weight[3]);
  const double product = 2.0 * elements(shapes.inputs[0]) * taps;
  return {product, product, product};
}

// Height and width are not split: that needs a halo exchange, which is not offered (METHODS 7).
Letters letters(const Attributes& attributes, const OperandShapes&) {
  Letters result{.inputs = {"ncHW"}, .parameters = {"ocKL"}, .outputs = {"noPQ"}};
  result.linear = "**";
  result.counts = {{"out_channels", 'o'}};
  if (!attributes.boolean("bias")) return result;
  result.parameters.emplace_back("o");
  result.linear += '+';
  return result;
}

Letters depthwise_letters(const Attributes& attributes, const OperandShapes&) {
  Letters result{.inputs = {"ncHW"}, .parameters = {"cAKL"}, .outputs = {"ncPQ"}};
  result.linear = "**";
  if (!attributes.boolean("bias")) return result;
  result.parameters.emplace_back("c");
  result.linear += '+';
  return result;
}

Letters transpose_letters(const Attributes& attributes, const OperandShapes&) {
  Letters result{.inputs = {"ncHW"}, .parameters = {"coKL"}, .outputs = {"noPQ"}};
  result.linear = "**";
  result.counts = {{"out_channels", 'o'}};
  if (!attributes.boolean("bias")) return result;
  result.parameters.emplace_back("o");
  result.linear += '+';
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

OpSchema depthwise_conv2d() {
  OpSchema row = conv2d();
  row.name = "depthwise_conv2d";
  row.text = "convolution of each channel with a kernel of its own";
  row.attributes.erase(row.attributes.begin());  // as many channels out as in
  row.has_kernels = false;
  row.infer = infer_depthwise;
  row.letters = depthwise_letters;
  return row;
}

OpSchema conv_transpose2d() {
  OpSchema row = conv2d();
  row.name = "conv_transpose2d";
  row.text = "two-dimensional convolution backwards: a stride makes images larger";
  row.has_kernels = false;
  row.infer = infer_transpose;
  row.flops = transpose_flops;
  row.letters = transpose_letters;
  return row;
}

}  // namespace millrace::ops
