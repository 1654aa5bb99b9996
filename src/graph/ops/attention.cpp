// attention: softmax(q kᵀ / sqrt(d)) v per head, on features ordered (heads, 3, d).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/ops/ops.h"
#include "graph/ops/shape_rules.h"

namespace millrace::ops {
namespace {

std::vector<std::int64_t> divisors(std::int64_t number) {
  std::vector<std::int64_t> small, large;
  for (std::int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    small.push_back(d);
    if (d * d != number) large.insert(large.begin(), number / d);
  }
  small.insert(small.end(), large.begin(), large.end());
  return small;
}

Inference infer(const Attributes& attributes, std::span<const TensorShape> inputs) {
  const Dims& dims = real_dims(inputs, 0);
  if (dims.size() != 2 || dims[1] % 3 != 0) refuse_input(0, inputs[0], "[positions, 3 · width]");
  const std::int64_t width = dims[1] / 3;
  const std::int64_t heads = integer_at_least(attributes, "heads", 1);
  if (width % heads != 0) {
    refuse("attribute 'heads'", fmt::format("{}", heads),
           fmt::format("a divisor of the width {}: {}", width, fmt::join(divisors(width), ", ")));
  }
  return {.outputs = {activation({dims[0], width})}};
}

// Two products forward; backward recomputes the scores and has four more. A causal row sees half of the positions.
OpFlops flops(const Attributes& attributes, const OperandShapes& shapes) {
  const auto positions = static_cast<double>(shapes.outputs[0].dims[0]);
  const auto width = static_cast<double>(shapes.outputs[0].dims[1]);
  const double pairs = attributes.boolean("causal") ? positions * (positions + 1.0) / 2.0 : positions * positions;
  const double product = 2.0 * pairs * width;
  const double softmax = 13.0 * pairs * static_cast<double>(attributes.integer("heads"));
  return {2.0 * product + softmax, 5.0 * product + 2.0 * softmax, 0.0};
}

// The features are split by whole heads; a position attends to others, so positions are not.
Letters letters(const Attributes& attributes, const OperandShapes&) {
  return {.inputs = {"nTh"},
          .parameters = {},
          .outputs = {"nTh"},
          .parts = {{'h', attributes.integer("heads")}},
          .counts = {{"heads", 'h'}}};
}

// Scores are recomputed from the input with the kept logarithm of each row's sum.
Saved saved(const Attributes& attributes, const OperandShapes& shapes) {
  return {.inputs = {0}, .extra_reals_per_sample = shapes.outputs[0].dims[0] * attributes.integer("heads")};
}

}  // namespace

OpSchema attention() {
  return {.name = "attention",
          .text = "multi-head self-attention on joined queries, keys and values",
          .attributes = {{"heads", std::nullopt}, {"causal", Attribute(true)}},
          .infer = infer,
          .flops = flops,
          .letters = letters,
          .saved = saved};
}

}  // namespace millrace::ops
