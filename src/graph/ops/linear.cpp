// linear: y[n, …, o] = x[n, …, k] · weight[o, k]ᵀ + bias[o]
#include <cmath>

#include "graph/ops/ops.h"
#include "graph/ops/shape_rules.h"

namespace millrace::ops {
namespace {

Inference infer(const Attributes& attributes, std::span<const TensorShape> inputs) {
  Dims dims = real_dims(inputs, 0);
  if (dims.empty()) refuse_input(0, inputs[0], "at least one dimension beside the batch axis");
  const std::int64_t in = dims.back();
  const std::int64_t out = integer_at_least(attributes, "out_features", 1);
  dims.back() = out;
  const Initializer start{Initializer::Kind::uniform, 1.0 / std::sqrt(static_cast<double>(in))};
  Inference result{.outputs = {activation(std::move(dims))}};
  result.parameters.push_back({"weight", {out, in}, start});
  if (attributes.boolean("bias")) result.parameters.push_back({"bias", {out}, start});
  return result;
}

OpFlops flops(const Attributes&, const OperandShapes& shapes) {
  const double product = 2.0 * elements(shapes.outputs[0]) * static_cast<double>(shapes.inputs[0].dims.back());
  return {product, product, product};
}

// k is contracted: splitting it makes y partial.
Letters letters(const Attributes& attributes, const OperandShapes& shapes) {
  const std::string lead = batch_and_letters(shapes.inputs[0].dims.size() - 1, "ko");
  Letters result{.inputs = {lead + "k"}, .parameters = {"ok"}, .outputs = {lead + "o"}};
  result.linear = "**";
  result.counts = {{"out_features", 'o'}};
  if (!attributes.boolean("bias")) return result;
  result.parameters.emplace_back("o");
  result.linear += '+';
  return result;
}

Saved saved(const Attributes&, const OperandShapes&) {
  return {.inputs = {0}, .parameters = {0}, .input_gradient_needs_only_parameters = true};
}

}  // namespace

OpSchema linear() {
  return {.name = "linear",
          .text = "matrix product over the last axis, with bias",
          .attributes = {{"out_features", std::nullopt}, {"bias", Attribute(true)}},
          .infer = infer,
          .flops = flops,
          .letters = letters,
          .saved = saved};
}

}  // namespace millrace::ops
