// lstm: a layer of long short-term memory over the positions of a sequence, with the parameters of PyTorch's.
#include <cmath>

#include "graph/ops/ops.h"
#include "graph/ops/shape_rules.h"

namespace millrace::ops {
namespace {

std::int64_t directions(const Attributes& attributes) { return attributes.boolean("bidirectional") ? 2 : 1; }

Inference infer(const Attributes& attributes, std::span<const TensorShape> inputs) {
  const Dims& dims = real_dims(inputs, 0);
  if (dims.size() != 2) refuse_input(0, inputs[0], "[positions, features]");
  const std::int64_t hidden = integer_at_least(attributes, "hidden", 1);
  const Initializer start{Initializer::Kind::uniform, 1.0 / std::sqrt(static_cast<double>(hidden))};
  Inference result{.outputs = {activation({dims[0], directions(attributes) * hidden})}};
  for (std::int64_t direction = 0; direction < directions(attributes); ++direction) {
    const std::string end = direction == 0 ? "_l0" : "_l0_reverse";
    // The four gates one below the other: input, forget, cell, output.
    result.parameters.push_back({"weight_ih" + end, {4 * hidden, dims[1]}, start});
    result.parameters.push_back({"weight_hh" + end, {4 * hidden, hidden}, start});
    result.parameters.push_back({"bias_ih" + end, {4 * hidden}, start});
    result.parameters.push_back({"bias_hh" + end, {4 * hidden}, start});
  }
  return result;
}

// Two products; and of each unit three sigmoids and two tangents, which count ten operations, and four products.
OpFlops flops(const Attributes& attributes, const OperandShapes& shapes) {
  const auto hidden = static_cast<double>(attributes.integer("hidden"));
  const auto features = static_cast<double>(shapes.inputs[0].dims[1]);
  const double units = static_cast<double>(shapes.inputs[0].dims[0] * directions(attributes)) * hidden;
  const double product = 2.0 * units * 4.0 * (features + hidden);
  return {product + 54.0 * units, product + 30.0 * units, product + 8.0 * units};
}

// Every position needs the whole of the one before it: only samples are split.
Letters letters(const Attributes& attributes, const OperandShapes&) {
  const bool both = attributes.boolean("bidirectional");
  Letters result{.inputs = {"nTI"}, .parameters = {}, .outputs = {both ? "nTO" : "nTH"}};
  for (int direction = 0; direction < (both ? 2 : 1); ++direction) {
    for (const char* parameter : {"GI", "GH", "G", "G"}) result.parameters.emplace_back(parameter);
  }
  return result;
}

// The gates and the cell state of each position.
Saved saved(const Attributes& attributes, const OperandShapes& shapes) {
  Saved kept{
      .inputs = {0},
      .outputs = {0},
      .parameters = {0, 1},
      .extra_reals_per_sample = 5 * shapes.inputs[0].dims[0] * directions(attributes) * attributes.integer("hidden")};
  if (attributes.boolean("bidirectional")) kept.parameters = {0, 1, 4, 5};
  return kept;
}

}  // namespace

OpSchema lstm() {
  return {.name = "lstm",
          .text = "long short-term memory over the positions of a sequence, one way or both",
          .attributes = {{"hidden", std::nullopt}, {"bidirectional", Attribute(false)}},
          .has_kernels = false,
          .infer = infer,
          .flops = flops,
          .letters = letters,
          .saved = saved};
}

}  // namespace millrace::ops
