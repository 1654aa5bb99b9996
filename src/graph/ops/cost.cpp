// cost: an operator of which only figures are known; it is planned and simulated, never trained (INTERFACES 5).
#include <limits>

#include "base/errors.h"
#include "graph/ops/ops.h"

namespace millrace::ops {
namespace {

// Its shapes come from its figures (GraphBuilder::add_cost), not from attributes.
Inference infer(const Attributes&, std::span<const TensorShape>) {
  throw InvalidInput("an operator of kind cost is added with its figures");
}

OpFlops flops(const Attributes&, const OperandShapes&) { return {}; }

// Only the batch axis can be split: what the bytes mean is not known. Upper case: never split.
Letters letters(const Attributes&, const OperandShapes& shapes) {
  return {.inputs = std::vector<std::string>(shapes.inputs.size(), "nA"),
          .parameters = std::vector<std::string>(shapes.parameters.size(), "B"),
          .outputs = {"nC"}};
}

// What it keeps is a number of bytes, not a tensor (OpFigures::saved_bytes).
Saved saved(const Attributes&, const OperandShapes&) { return {}; }

}  // namespace

OpSchema cost() {
  return {.name = "cost",
          .text = "explicit times and bytes: planned and simulated, not trained",
          .minimum_inputs = 0,
          .maximum_inputs = std::numeric_limits<int>::max(),
          .explicit_figures = true,
          .has_kernels = false,
          .infer = infer,
          .flops = flops,
          .letters = letters,
          .saved = saved};
}

}  // namespace millrace::ops
