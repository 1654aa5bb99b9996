// add and multiply of two tensors of the same shape.
#include "graph/ops/ops.h"
#include "graph/ops/shape_rules.h"

namespace millrace::ops {
namespace {

Inference infer(const Attributes&, std::span<const TensorShape> inputs) {
  const Dims& dims = real_dims(inputs, 0);
  if (real_dims(inputs, 1) != dims) refuse_input(1, inputs[1], format(dims) + " as input 0");
  return {.outputs = {activation(dims)}};
}

OpFlops add_flops(const Attributes&, const OperandShapes& shapes) { return {elements(shapes.outputs[0]), 0.0, 0.0}; }

OpFlops multiply_flops(const Attributes&, const OperandShapes& shapes) {
  const double count = elements(shapes.outputs[0]);
  return {count, 2.0 * count, 0.0};
}

Letters add_letters(const Attributes& attributes, const OperandShapes& shapes) {
  Letters result = elementwise_letters(attributes, shapes);
  result.linear = "++";
  return result;
}

Letters multiply_letters(const Attributes& attributes, const OperandShapes& shapes) {
  Letters result = elementwise_letters(attributes, shapes);
  result.linear = "**";
  return result;
}

Saved multiply_saved(const Attributes&, const OperandShapes&) { return {.inputs = {0, 1}}; }

}  // namespace

OpSchema add() {
  return {.name = "add",
          .text = "sum of two tensors",
          .minimum_inputs = 2,
          .maximum_inputs = 2,
          .infer = infer,
          .flops = add_flops,
          .letters = add_letters,
          .saved = nothing_saved};
}

OpSchema multiply() {
  return {.name = "multiply",
          .text = "product of two tensors, element by element",
          .minimum_inputs = 2,
          .maximum_inputs = 2,
          .infer = infer,
          .flops = multiply_flops,
          .letters = multiply_letters,
          .saved = multiply_saved};
}

}  // namespace millrace::ops
