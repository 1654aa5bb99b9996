// embedding of indices; position_embedding and segment_embedding, which are added to a sequence.
#include "graph/ops/ops.h"
#include "graph/ops/shape_rules.h"

namespace millrace::ops {
namespace {

constexpr Initializer kStandardNormal{Initializer::Kind::normal, 1.0};

Inference infer_embedding(const Attributes& attributes, std::span<const TensorShape> inputs) {
  if (inputs[0].element != ElementType::index) refuse_input(0, inputs[0], "elements that are indices");
  const std::int64_t vocabulary = integer_at_least(attributes, "vocabulary", 1);
  const std::int64_t width = integer_at_least(attributes, "width", 1);
  Dims dims = inputs[0].dims;
  dims.push_back(width);
  return {.outputs = {activation(std::move(dims))}, .parameters = {{"weight", {vocabulary, width}, kStandardNormal}}};
}

OpFlops embedding_flops(const Attributes&, const OperandShapes& shapes) {
  return {0.0, 0.0, elements(shapes.outputs[0])};
}

// A table split by rows (v) looks up what it has and gives zeros elsewhere: the output is partial.
Letters embedding_letters(const Attributes&, const OperandShapes& shapes) {
  const std::string lead = batch_and_letters(shapes.inputs[0].dims.size(), "vh");
  return {.inputs = {lead},
          .parameters = {"vh"},
          .outputs = {lead + "h"},
          .linear = "-+",
          .counts = {{"vocabulary", 'v'}, {"width", 'h'}}};
}

Saved embedding_saved(const Attributes&, const OperandShapes&) { return {.inputs = {0}}; }

Inference infer_position(const Attributes&, std::span<const TensorShape> inputs) {
  const Dims& dims = real_dims(inputs, 0);
  if (dims.size() != 2) refuse_input(0, inputs[0], "[positions, width]");
  return {.outputs = {activation(dims)}, .parameters = {{"weight", dims, kStandardNormal}}};
}

OpFlops position_flops(const Attributes&, const OperandShapes& shapes) {
  const double count = elements(shapes.outputs[0]);
  return {count, 0.0, count};
}

Letters position_letters(const Attributes&, const OperandShapes&) {
  return {.inputs = {"nth"}, .parameters = {"th"}, .outputs = {"nth"}, .linear = "++"};
}

Inference infer_segment(const Attributes& attributes, std::span<const TensorShape> inputs) {
  const Dims& dims = real_dims(inputs, 0);
  if (dims.size() != 2) refuse_input(0, inputs[0], "[positions, width]");
  const std::int64_t segments = integer_at_least(attributes, "segments", 1);
  return {.outputs = {activation(dims)}, .parameters = {{"weight", {segments, dims[1]}, kStandardNormal}}};
}

// Which row of the table a position reads is known for whole sequences only: positions are not split.
Letters segment_letters(const Attributes&, const OperandShapes&) {
  return {.inputs = {"nTh"}, .parameters = {"Sh"}, .outputs = {"nTh"}, .linear = "++"};
}

}  // namespace

OpSchema embedding() {
  return {.name = "embedding",
          .text = "rows of a table by index",
          .attributes = {{"vocabulary", std::nullopt}, {"width", std::nullopt}},
          .infer = infer_embedding,
          .flops = embedding_flops,
          .letters = embedding_letters,
          .saved = embedding_saved};
}

OpSchema position_embedding() {
  return {.name = "position_embedding",
          .text = "adds a learned vector to each position",
          .infer = infer_position,
          .flops = position_flops,
          .letters = position_letters,
          .saved = nothing_saved};
}

OpSchema segment_embedding() {
  return {.name = "segment_embedding",
          .text = "adds a learned vector to all positions of each of several parts of equal length",
          .attributes = {{"segments", Attribute(std::int64_t{2})}},
          .infer = infer_segment,
          .flops = position_flops,
          .letters = segment_letters,
          .saved = nothing_saved};
}

}  // namespace millrace::ops
