// batch_matmul: y[n, …, m, p] = a[n, …, m, k] · b[n, …, k, p], or b[n, …, p, k] when transposed.
#include "graph/ops/ops.h"
#include "graph/ops/shape_rules.h"

namespace millrace::ops {
namespace {

Inference infer(const Attributes& attributes, std::span<const TensorShape> inputs) {
  const Dims& a = real_dims(inputs, 0);
  const Dims& b = real_dims(inputs, 1);
  if (a.size() < 2) refuse_input(0, inputs[0], "at least two dimensions beside the batch axis");
  const bool transposed = attributes.boolean("transpose_b");
  const std::size_t rank = a.size();
  Dims wanted = a;
  if (b.size() == rank) {
    wanted[rank - 2] = transposed ? b[rank - 2] : a[rank - 1];
    wanted[rank - 1] = transposed ? a[rank - 1] : b[rank - 1];
  }
  if (b != wanted) {
    refuse_input(
        1, inputs[1],
        (transposed ? "leading dimensions and last of input 0 " : "leading dimensions of input 0, then its last ") +
            format(a));
  }
  Dims dims = a;
  dims.back() = b[transposed ? rank - 2 : rank - 1];
  return {.outputs = {activation(std::move(dims))}};
}

OpFlops flops(const Attributes&, const OperandShapes& shapes) {
  const double product = 2.0 * elements(shapes.outputs[0]) * static_cast<double>(shapes.inputs[0].dims.back());
  return {product, 2.0 * product, 0.0};
}

Letters letters(const Attributes& attributes, const OperandShapes& shapes) {
  const std::string lead = batch_and_letters(shapes.inputs[0].dims.size() - 2, "mkp");
  return {.inputs = {lead + "mk", lead + (attributes.boolean("transpose_b") ? "pk" : "kp")},
          .parameters = {},
          .outputs = {lead + "mp"},
          .linear = "**"};
}

Saved saved(const Attributes&, const OperandShapes&) { return {.inputs = {0, 1}}; }

}  // namespace

OpSchema batch_matmul() {
  return {.name = "batch_matmul",
          .text = "matrix products over the last two axes",
          .minimum_inputs = 2,
          .maximum_inputs = 2,
          .attributes = {{"transpose_b", Attribute(false)}},
          .infer = infer,
          .flops = flops,
          .letters = letters,
          .saved = saved};
}

}  // namespace millrace::ops
