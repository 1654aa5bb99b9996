// An operator that the table of kinds does not list.
#include "shard/exchange_kind.h"

namespace millrace::shard {
namespace {

Inference infer(const Attributes& attributes, std::span<const TensorShape> inputs) {
  return {.outputs = {{attributes.integers("dims"), inputs.front().element, true}}};
}

OpFlops no_flops(const Attributes&, const OperandShapes&) { return {}; }

Letters no_letters(const Attributes&, const OperandShapes& shapes) {
  return {.inputs = {std::string(shapes.inputs[0].dims.size() + 1, 'A')},
          .parameters = {},
          .outputs = {std::string(shapes.outputs[0].dims.size() + 1, 'A')}};
}

Saved nothing(const Attributes&, const OperandShapes&) { return {}; }

}  // namespace

const OpSchema& exchange_kind() {
  static const OpSchema kind{.name = "exchange",
                             .text = "a tensor in other parts",
                             .attributes = {{"dims", std::nullopt}},
                             .infer = infer,
                             .flops = no_flops,
                             .letters = no_letters,
                             .saved = nothing};
  return kind;
}

}  // namespace millrace::shard
