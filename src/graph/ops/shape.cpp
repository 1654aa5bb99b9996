// Kinds that move, leave out or rename elements: concat, select, reshape, flatten, transpose.
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "graph/ops/ops.h"
#include "graph/ops/shape_rules.h"

namespace millrace::ops {
namespace {

OpFlops no_flops(const Attributes&, const OperandShapes&) { return {}; }

std::size_t axis_of(const Attributes& attributes, const Dims& dims) {
  const std::int64_t axis = attributes.integer("axis");
  if (axis < 0 || axis >= static_cast<std::int64_t>(dims.size())) {
    refuse("attribute 'axis'", fmt::format("{}", axis), "an axis of " + format(dims) + ", from 0");
  }
  return static_cast<std::size_t>(axis);
}

Inference infer_concat(const Attributes& attributes, std::span<const TensorShape> inputs) {
  Dims dims = real_dims(inputs, 0);
  const std::size_t joined = axis_of(attributes, dims);
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const Dims& other = real_dims(inputs, i);
    Dims wanted = inputs[0].dims;
    if (other.size() == wanted.size()) wanted[joined] = other[joined];
    if (other != wanted) refuse_input(i, inputs[i], fmt::format("{} but for axis {}", format(inputs[0].dims), joined));
    dims[joined] += other[joined];
  }
  return {.outputs = {activation(std::move(dims))}};
}

// The joined axis is not split; all inputs of one extent share a letter for it, the output has its own.
Letters concat_letters(const Attributes& attributes, const OperandShapes& shapes) {
  const auto joined = static_cast<std::size_t>(attributes.integer("axis"));
  const std::string others = batch_and_letters(shapes.outputs[0].dims.size());
  const auto with = [&](char letter) {
    std::string all = others;
    all[joined + 1] = letter;
    return all;
  };
  Letters result{.inputs = {}, .parameters = {}, .outputs = {with('Z')}};
  result.linear.assign(shapes.inputs.size(), '+');
  std::map<std::int64_t, char> letter_of;
  for (const TensorShape& input : shapes.inputs) {
    const auto next = static_cast<char>('A' + letter_of.size());
    const char letter = letter_of.emplace(input.dims[joined], next).first->second;
    if (letter == 'Z') refuse("inputs", "more than 25 different extents of the joined axis", "at most 25");
    result.inputs.push_back(with(letter));
  }
  return result;
}

Inference infer_select(const Attributes& attributes, std::span<const TensorShape> inputs) {
  Dims dims = real_dims(inputs, 0);
  const std::size_t axis = axis_of(attributes, dims);
  const std::int64_t index = attributes.integer("index");
  if (index < 0 || index >= dims[axis]) {
    refuse("attribute 'index'", fmt::format("{}", index), fmt::format("0 to {}", dims[axis] - 1));
  }
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  return {.outputs = {activation(std::move(dims))}};
}

// The axis that goes is not split: one part would have the index, the others nothing.
Letters select_letters(const Attributes& attributes, const OperandShapes& shapes) {
  const std::string kept = batch_and_letters(shapes.outputs[0].dims.size());
  std::string all = kept;
  all.insert(static_cast<std::size_t>(attributes.integer("axis")) + 1, 1, 'A');
  return {.inputs = {all}, .parameters = {}, .outputs = {kept}, .linear = "+"};
}

Inference infer_reshape(const Attributes& attributes, std::span<const TensorShape> inputs) {
  const std::int64_t count = element_count(real_dims(inputs, 0));
  const std::vector<std::int64_t>& wanted = attributes.integers("dims");
  const std::string allowed = fmt::format("dims at least 1, one of them -1 or none, with {} elements in all", count);
  Dims dims = wanted;
  std::int64_t known = 1;
  std::int64_t* open = nullptr;
  for (std::int64_t& extent : dims) {
    if (extent == -1 && open == nullptr) {
      open = &extent;
    } else if (extent < 1 || extent > count) {
      refuse("attribute 'dims'", format(wanted), allowed);
    } else {
      known *= extent;
      if (known > count) refuse("attribute 'dims'", format(wanted), allowed);
    }
  }
  if (open != nullptr && count % known == 0) *open = count / known;
  if (element_count(dims) != count) refuse("attribute 'dims'", format(wanted), allowed);
  return {.outputs = {activation(std::move(dims))}};
}

Inference infer_flatten(const Attributes&, std::span<const TensorShape> inputs) {
  return {.outputs = {activation({element_count(real_dims(inputs, 0))})}};
}

// Runs of dimensions with equal products belong together; only the major factor of a run can carry a split, in as many
// parts as both sides share (METHODS 7). Dimensions of size 1 carry none.
Letters flatten_letters(const Attributes&, const OperandShapes& shapes) {
  const Dims& in = shapes.inputs[0].dims;
  const Dims& out = shapes.outputs[0].dims;
  char upper = 'A';
  std::string from{'n'}, to{'n'};
  std::map<char, std::int64_t> parts;
  const std::string lower = lower_letters(in.size());
  std::size_t i = 0, o = 0, used = 0;
  const auto skip_ones = [&upper](const Dims& dims, std::size_t& at, std::string& letters) {
    for (; at < dims.size() && dims[at] == 1; ++at) letters.push_back(upper++);
  };
  for (;;) {
    skip_ones(in, i, from);
    skip_ones(out, o, to);
    if (i == in.size()) break;  // both ends: the products are equal
    const std::int64_t shared = std::gcd(in[i], out[o]);
    if (shared > 1) {
      const char letter = lower[used++];
      from.push_back(letter);
      to.push_back(letter);
      if (in[i] != out[o]) parts.emplace(letter, shared);
    } else {
      from.push_back(upper++);
      to.push_back(upper++);
    }
    std::int64_t product_in = in[i++], product_out = out[o++];
    while (product_in != product_out) {
      if (product_in < product_out) {
        product_in *= in[i++];
        from.push_back(upper++);
      } else {
        product_out *= out[o++];
        to.push_back(upper++);
      }
    }
  }
  return {.inputs = {from}, .parameters = {}, .outputs = {to}, .parts = std::move(parts), .linear = "+"};
}

Letters reshape_letters(const Attributes& attributes, const OperandShapes& shapes) {
  Letters result = flatten_letters(attributes, shapes);
  result.counts = {{"dims", '*'}};
  return result;
}

Inference infer_transpose(const Attributes& attributes, std::span<const TensorShape> inputs) {
  const Dims& dims = real_dims(inputs, 0);
  const std::vector<std::int64_t>& permutation = attributes.integers("permutation");
  std::vector<bool> seen(dims.size(), false);
  bool valid = permutation.size() == dims.size();
  Dims permuted;
  for (std::size_t i = 0; valid && i < permutation.size(); ++i) {
    const auto axis = static_cast<std::size_t>(permutation[i]);  // a negative one becomes too large
    valid = axis < dims.size() && !seen[axis];
    if (!valid) break;
    seen[axis] = true;
    permuted.push_back(dims[axis]);
  }
  if (!valid) {
    refuse("attribute 'permutation'", format(permutation),
           fmt::format("each of 0 to {} once", static_cast<std::int64_t>(dims.size()) - 1));
  }
  return {.outputs = {activation(std::move(permuted))}};
}

Letters transpose_letters(const Attributes& attributes, const OperandShapes& shapes) {
  const std::string from = batch_and_letters(shapes.inputs[0].dims.size());
  std::string to{'n'};
  for (const std::int64_t axis : attributes.integers("permutation")) {
    to.push_back(from[static_cast<std::size_t>(axis) + 1]);
  }
  return {.inputs = {from}, .parameters = {}, .outputs = {to}, .linear = "+"};
}

}  // namespace

OpSchema concat() {
  return {.name = "concat",
          .text = "joins tensors along one axis",
          .minimum_inputs = 2,
          .maximum_inputs = std::numeric_limits<int>::max(),
          .attributes = {{"axis", std::nullopt}},
          .infer = infer_concat,
          .flops = no_flops,
          .letters = concat_letters,
          .saved = nothing_saved};
}

OpSchema select() {
  return {.name = "select",
          .text = "one position of an axis, which then is gone",
          .attributes = {{"axis", std::nullopt}, {"index", std::nullopt}},
          .infer = infer_select,
          .flops = no_flops,
          .letters = select_letters,
          .saved = nothing_saved};
}

OpSchema reshape() {
  return {.name = "reshape",
          .text = "the same elements with other dimensions",
          .attributes = {{"dims", std::nullopt}},
          .infer = infer_reshape,
          .flops = no_flops,
          .letters = reshape_letters,
          .saved = nothing_saved};
}

OpSchema flatten() {
  return {.name = "flatten",
          .text = "the elements of a sample as one dimension",
          .infer = infer_flatten,
          .flops = no_flops,
          .letters = flatten_letters,
          .saved = nothing_saved};
}

OpSchema transpose() {
  return {.name = "transpose",
          .text = "permutes the axes of a sample",
          .attributes = {{"permutation", std::nullopt}},
          .infer = infer_transpose,
          .flops = no_flops,
          .letters = transpose_letters,
          .saved = nothing_saved};
}

}  // namespace millrace::ops
