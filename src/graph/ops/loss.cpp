// cross_entropy and mean_squared_error: one loss a sample.
#include "graph/ops/ops.h"
#include "graph/ops/shape_rules.h"

namespace millrace::ops {
namespace {

Inference infer_cross_entropy(const Attributes&, std::span<const TensorShape> inputs) {
  Dims positions = real_dims(inputs, 0);
  if (positions.empty()) refuse_input(0, inputs[0], "logits with the classes as last dimension");
  positions.pop_back();
  if (inputs[1].element != ElementType::index || inputs[1].dims != positions) {
    refuse_input(1, inputs[1], format(positions) + " of indices: the logits' dimensions without the last");
  }
  return {.outputs = {activation({}), activation({})}};
}

OpFlops cross_entropy_flops(const Attributes&, const OperandShapes& shapes) {
  const double count = elements(shapes.inputs[0]);
  return {14.0 * count, 13.0 * count, 0.0};
}

// The mean over positions is no plain sum, so they are not split. Split classes take the maximum and the sums of each
// row over the parts.
Letters cross_entropy_letters(const Attributes&, const OperandShapes& shapes) {
  std::string positions = "n";
  for (std::size_t i = 0; i + 1 < shapes.inputs[0].dims.size(); ++i) positions.push_back(static_cast<char>('A' + i));
  return {.inputs = {positions + "v", positions}, .parameters = {}, .outputs = {"n", "n"}, .reduced = "v"};
}

Inference infer_mean_squared_error(const Attributes&, std::span<const TensorShape> inputs) {
  const Dims& dims = real_dims(inputs, 0);
  if (real_dims(inputs, 1) != dims) refuse_input(1, inputs[1], format(dims) + " as input 0");
  return {.outputs = {activation({})}};
}

OpFlops mean_squared_error_flops(const Attributes&, const OperandShapes& shapes) {
  const double count = elements(shapes.inputs[0]);
  return {3.0 * count, 2.0 * count, 0.0};
}

Letters mean_squared_error_letters(const Attributes&, const OperandShapes& shapes) {
  std::string x = "n";
  for (std::size_t i = 0; i < shapes.inputs[0].dims.size(); ++i) x.push_back(static_cast<char>('A' + i));
  return {.inputs = {x, x}, .parameters = {}, .outputs = {"n"}};
}

Saved both_inputs(const Attributes&, const OperandShapes&) { return {.inputs = {0, 1}}; }

}  // namespace

OpSchema cross_entropy() {
  return {.name = "cross_entropy",
          .text = "cross-entropy of softmax over the last axis, mean over positions; and the fraction of right answers",
          .minimum_inputs = 2,
          .maximum_inputs = 2,
          .output_names = {"output", "correct"},
          .is_loss = true,
          .infer = infer_cross_entropy,
          .flops = cross_entropy_flops,
          .letters = cross_entropy_letters,
          .saved = both_inputs};
}

OpSchema mean_squared_error() {
  return {.name = "mean_squared_error",
          .text = "mean of squared differences over the elements of a sample",
          .minimum_inputs = 2,
          .maximum_inputs = 2,
          .is_loss = true,
          .infer = infer_mean_squared_error,
          .flops = mean_squared_error_flops,
          .letters = mean_squared_error_letters,
          .saved = both_inputs};
}

}  // namespace millrace::ops
