// What the rules of several operator kinds share: checks with one wording, windows, and letters.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "graph/op_schema.h"

namespace millrace::ops {

/// \throws InvalidInput  "OPERAND: found FOUND, allowed: ALLOWED"; GraphBuilder puts the operator before it.
[[noreturn]] void refuse(std::string_view operand, std::string_view found, std::string_view allowed);
[[noreturn]] void refuse_input(std::size_t position, const TensorShape& found, std::string_view allowed);

/// Dims of input `position`. \throws InvalidInput  when its elements are indices.
const Dims& real_dims(std::span<const TensorShape> inputs, std::size_t position);

/// \throws InvalidInput  when the attribute is below `minimum`.
std::int64_t integer_at_least(const Attributes& attributes, std::string_view name, std::int64_t minimum);

/// Two integers, height then width. \throws InvalidInput  another length, or one below `minimum`.
std::array<std::int64_t, 2> height_width(const Attributes& attributes, std::string_view name, std::int64_t minimum);

/// Output height and width of a sliding window (attributes kernel, stride, padding) over [C, H, W]:
/// floor((H + 2 padding - kernel) / stride) + 1. \throws InvalidInput  when the window does not fit.
std::array<std::int64_t, 2> window_output(const Attributes& attributes, const Dims& input);

/// Elements of one sample, for flops.
double elements(const TensorShape& shape);

/// Shape of real elements with a batch axis.
TensorShape activation(Dims dims);

/// `count` different lower-case letters, none of them the batch letter n or in `reserved`.
std::string lower_letters(std::size_t count, std::string_view reserved = {});

/// The batch letter n, then `count` such letters.
std::string batch_and_letters(std::size_t count, std::string_view reserved = {});

/// The same letters for every input and output: kinds that work element by element.
Letters elementwise_letters(const Attributes&, const OperandShapes& shapes);

/// Output of the same shape as the only input.
Inference same_shape(const Attributes&, std::span<const TensorShape> inputs);

/// Nothing is kept for backward.
Saved nothing_saved(const Attributes&, const OperandShapes&);

}  // namespace millrace::ops
