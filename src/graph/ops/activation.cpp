// relu, tanh, gelu and softmax.
#include "graph/ops/ops.h"
#include "graph/ops/shape_rules.h"

namespace millrace::ops {
namespace {

OpFlops relu_flops(const Attributes&, const OperandShapes& shapes) {
  const double count = elements(shapes.outputs[0]);
  return {count, count, 0.0};
}

// The sign of the output tells where the input was positive, so the input need not stay.
Saved output_saved(const Attributes&, const OperandShapes&) { return {.outputs = {0}}; }

// The slope of the hyperbolic tangent is 1 - y². It counts ten operations, as in gelu.
OpFlops tanh_flops(const Attributes&, const OperandShapes& shapes) {
  const double count = elements(shapes.outputs[0]);
  return {10.0 * count, 3.0 * count, 0.0};
}

Inference infer_gelu(const Attributes& attributes, std::span<const TensorShape> inputs) {
  const std::string& approximate = attributes.text("approximate");
  if (approximate != "erf" && approximate != "tanh") {
    refuse("attribute 'approximate'", "'" + approximate + "'", "erf, tanh");
  }
  return same_shape(attributes, inputs);
}

// An error function or hyperbolic tangent counts about ten operations.
OpFlops gelu_flops(const Attributes&, const OperandShapes& shapes) {
  const double count = elements(shapes.outputs[0]);
  return {14.0 * count, 18.0 * count, 0.0};
}

Saved input_saved(const Attributes&, const OperandShapes&) { return {.inputs = {0}}; }

Inference infer_softmax(const Attributes& attributes, std::span<const TensorShape> inputs) {
  if (real_dims(inputs, 0).empty()) refuse_input(0, inputs[0], "at least one dimension beside the batch axis");
  return same_shape(attributes, inputs);
}

OpFlops softmax_flops(const Attributes&, const OperandShapes& shapes) {
  const double count = elements(shapes.outputs[0]);
  return {13.0 * count, 4.0 * count, 0.0};
}

Letters softmax_letters(const Attributes&, const OperandShapes& shapes) {
  const std::string x = batch_and_letters(shapes.inputs[0].dims.size() - 1) + "D";
  return {.inputs = {x}, .parameters = {}, .outputs = {x}};
}

}  // namespace

OpSchema relu() {
  return {.name = "relu",
          .text = "max(x, 0); its backward reads the output",
          .infer = same_shape,
          .flops = relu_flops,
          .letters = elementwise_letters,
          .saved = output_saved};
}

OpSchema tanh() {
  return {.name = "tanh",
          .text = "hyperbolic tangent; its backward reads the output",
          .infer = same_shape,
          .flops = tanh_flops,
          .letters = elementwise_letters,
          .saved = output_saved};
}

OpSchema gelu() {
  return {.name = "gelu",
          .text = "Gaussian error linear unit, exact (erf) or approximate (tanh)",
          .attributes = {{"approximate", Attribute(std::string("erf"))}},
          .infer = infer_gelu,
          .flops = gelu_flops,
          .letters = elementwise_letters,
          .saved = input_saved};
}

OpSchema softmax() {
  return {.name = "softmax",
          .text = "softmax over the last axis; its backward reads the output",
          .infer = infer_softmax,
          .flops = softmax_flops,
          .letters = softmax_letters,
          .saved = output_saved};
}

}  // namespace millrace::ops
