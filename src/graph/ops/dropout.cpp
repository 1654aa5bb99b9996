// dropout: zeroes elements at random and scales the rest; its mask is a function of (seed, operator, step, sample).
#include <fmt/format.h>

#include "graph/ops/ops.h"
#include "graph/ops/shape_rules.h"

namespace millrace::ops {
namespace {

Inference infer(const Attributes& attributes, std::span<const TensorShape> inputs) {
  const double probability = attributes.real("probability");
  if (!(probability >= 0.0 && probability < 1.0)) {
    refuse("attribute 'probability'", fmt::format("{}", probability), "real from 0 to below 1");
  }
  return same_shape(attributes, inputs);
}

// Drawing a counter-based random number counts about twenty operations; backward draws the mask again.
OpFlops flops(const Attributes&, const OperandShapes& shapes) {
  const double count = elements(shapes.outputs[0]);
  return {20.0 * count, 20.0 * count, 0.0};
}

// The mask does not depend on the values.
Letters letters(const Attributes& attributes, const OperandShapes& shapes) {
  Letters result = elementwise_letters(attributes, shapes);
  result.linear = "+";
  return result;
}

}  // namespace

OpSchema dropout() {
  return {.name = "dropout",
          .text = "zeroes elements with the given probability in training and scales the rest",
          .attributes = {{"probability", std::nullopt}},
          .infer = infer,
          .flops = flops,
          .letters = letters,
          .saved = nothing_saved};
}

}  // namespace millrace::ops
