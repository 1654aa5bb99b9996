// additive_attention (Bahdanau et al., arXiv 1409.0473, normalised): each query position t weighs the source positions
// s by softmax of weight · tanh(q[t] + k[s] + bias), `weight` scaled to the length `scale`, and sums their values.
#include "graph/ops/ops.h"
#include "graph/ops/shape_rules.h"

namespace millrace::ops {
namespace {

Inference infer(const Attributes&, std::span<const TensorShape> inputs) {
  const Dims& queries = real_dims(inputs, 0);
  const Dims& keys = real_dims(inputs, 1);
  const Dims& values = real_dims(inputs, 2);
  if (queries.size() != 2) refuse_input(0, inputs[0], "[positions, units]");
  if (keys.size() != 2 || keys[1] != queries[1]) {
    refuse_input(1, inputs[1], "[source positions, units] with the units of input 0 " + format(queries));
  }
  if (values.size() != 2 || values[0] != keys[0]) {
    refuse_input(2, inputs[2], "[source positions, width] with the positions of input 1 " + format(keys));
  }
  const Dims units{queries[1]};
  return {.outputs = {activation({queries[0], values[1]})},
          .parameters = {{"weight", units, {Initializer::Kind::uniform, 0.1}},
                         {"scale", {1}, {Initializer::Kind::ones}},
                         {"bias", units, {Initializer::Kind::zeros}}}};
}

// A pair takes two sums, a tangent (ten operations) and a product for each unit, the softmax, and a product for each
// value. Backward computes the tangents again.
OpFlops flops(const Attributes&, const OperandShapes& shapes) {
  const double pairs = static_cast<double>(shapes.inputs[0].dims[0]) * static_cast<double>(shapes.inputs[1].dims[0]);
  const auto units = static_cast<double>(shapes.inputs[0].dims[1]);
  const auto width = static_cast<double>(shapes.inputs[2].dims[1]);
  return {pairs * (14.0 * units + 13.0 + 2.0 * width), pairs * (22.0 * units + 4.0 + 4.0 * width), pairs * 3.0 * units};
}

// Query positions are independent; the softmax is over the source, and its logits over the units.
Letters letters(const Attributes&, const OperandShapes&) {
  return {.inputs = {"ntU", "nSU", "nSv"}, .parameters = {"U", "A", "U"}, .outputs = {"ntv"}, .linear = "--+---"};
}

// The weights of each pair are kept too.
Saved saved(const Attributes&, const OperandShapes& shapes) {
  return {.inputs = {0, 1, 2},
          .parameters = {0, 1, 2},
          .extra_reals_per_sample = shapes.inputs[0].dims[0] * shapes.inputs[1].dims[0]};
}

}  // namespace

OpSchema additive_attention() {
  return {.name = "additive_attention",
          .text = "attention of queries to the keys and values of another sequence, by an additive score",
          .minimum_inputs = 3,
          .maximum_inputs = 3,
          .has_kernels = false,
          .infer = infer,
          .flops = flops,
          .letters = letters,
          .saved = saved};
}

}  // namespace millrace::ops
