// max_pool, avg_pool over sliding windows of [C, H, W], and global_average_pool to [C].
#include "graph/ops/ops.h"
#include "graph/ops/shape_rules.h"

namespace millrace::ops {
namespace {

const Dims& image_dims(std::span<const TensorShape> inputs) {
  const Dims& dims = real_dims(inputs, 0);
  if (dims.size() != 3) refuse_input(0, inputs[0], "[channels, height, width]");
  return dims;
}

Inference infer_window(const Attributes& attributes, std::span<const TensorShape> inputs) {
  const Dims& dims = image_dims(inputs);
  const auto kernel = height_width(attributes, "kernel", 1);
  const auto padding = height_width(attributes, "padding", 0);
  // A window that sees padding only would have no maximum.
  if (padding[0] >= kernel[0] || padding[1] >= kernel[1]) {
    refuse("attribute 'padding'", format(attributes.integers("padding")),
           "less than the kernel " + format(attributes.integers("kernel")));
  }
  const auto output = window_output(attributes, dims);
  return {.outputs = {activation({dims[0], output[0], output[1]})}};
}

OpFlops window_flops(const Attributes& attributes, const OperandShapes& shapes) {
  const auto kernel = height_width(attributes, "kernel", 1);
  const double taps = static_cast<double>(kernel[0] * kernel[1]) * elements(shapes.outputs[0]);
  return {taps, taps, 0.0};
}

Letters window_letters(const Attributes&, const OperandShapes&) {
  return {.inputs = {"ncHW"}, .parameters = {}, .outputs = {"ncPQ"}};
}

// The position of the maximum of each window.
Saved max_pool_saved(const Attributes&, const OperandShapes& shapes) {
  return {.extra_reals_per_sample = shapes.outputs[0].elements_per_sample()};
}

Inference infer_global(const Attributes&, std::span<const TensorShape> inputs) {
  return {.outputs = {activation({image_dims(inputs)[0]})}};
}

OpFlops global_flops(const Attributes&, const OperandShapes& shapes) {
  const double count = elements(shapes.inputs[0]);
  return {count, count, 0.0};
}

Letters global_letters(const Attributes&, const OperandShapes&) {
  return {.inputs = {"ncHW"}, .parameters = {}, .outputs = {"nc"}, .linear = "+"};
}

Letters average_letters(const Attributes& attributes, const OperandShapes& shapes) {
  Letters result = window_letters(attributes, shapes);
  result.linear = "+";
  return result;
}

OpSchema window_pool(std::string name, std::string text) {
  const Attribute none = std::vector<std::int64_t>{0, 0};
  return {.name = std::move(name),
          .text = std::move(text),
          .attributes = {{"kernel", std::nullopt}, {"stride", std::nullopt}, {"padding", none}},
          .infer = infer_window,
          .flops = window_flops,
          .letters = window_letters,
          .saved = nothing_saved};
}

}  // namespace

OpSchema max_pool() {
  OpSchema row = window_pool("max_pool", "largest element of each window; padding never wins");
  row.saved = max_pool_saved;
  return row;
}

OpSchema avg_pool() {
  OpSchema row = window_pool("avg_pool", "mean of each window; padding counts as zeros in the divisor");
  row.letters = average_letters;
  return row;
}

OpSchema global_average_pool() {
  return {.name = "global_average_pool",
          .text = "mean of each channel",
          .infer = infer_global,
          .flops = global_flops,
          .letters = global_letters,
          .saved = nothing_saved};
}

}  // namespace millrace::ops
