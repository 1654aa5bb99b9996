// The shared checks of operator kinds.
#include "graph/ops/shape_rules.h"

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace::ops {

void refuse(std::string_view operand, std::string_view found, std::string_view allowed) {
  throw InvalidInput(fmt::format("{}: found {}, allowed: {}", operand, found, allowed));
}

void refuse_input(std::size_t position, const TensorShape& found, std::string_view allowed) {
  const std::string_view element = found.element == ElementType::index ? " of indices" : "";
  refuse(fmt::format("input {}", position), format(found.dims) + std::string(element), allowed);
}

const Dims& real_dims(std::span<const TensorShape> inputs, std::size_t position) {
  const TensorShape& shape = inputs[position];
  if (shape.element != ElementType::real) refuse_input(position, shape, "real elements");
  return shape.dims;
}

std::int64_t integer_at_least(const Attributes& attributes, std::string_view name, std::int64_t minimum) {
  const std::int64_t value = attributes.integer(name);
  if (value < minimum) {
    refuse(fmt::format("attribute '{}'", name), fmt::format("{}", value), fmt::format("integer, at least {}", minimum));
  }
  return value;
}

std::array<std::int64_t, 2> height_width(const Attributes& attributes, std::string_view name, std::int64_t minimum) {
  const std::vector<std::int64_t>& list = attributes.integers(name);
  if (list.size() != 2 || list[0] < minimum || list[1] < minimum) {
    refuse(fmt::format("attribute '{}'", name), format(list), fmt::format("two integers, at least {}", minimum));
  }
  return {list[0], list[1]};
}

std::array<std::int64_t, 2> window_output(const Attributes& attributes, const Dims& input) {
  const auto kernel = height_width(attributes, "kernel", 1);
  const auto stride = height_width(attributes, "stride", 1);
  const auto padding = height_width(attributes, "padding", 0);
  std::array<std::int64_t, 2> output{};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t room = input[axis + 1] + 2 * padding[axis] - kernel[axis];
    if (room < 0) {
      refuse("input 0", format(input),
             fmt::format("height and width with padding at least the kernel {} (padding {})",
                         format(attributes.integers("kernel")), format(attributes.integers("padding"))));
    }
    output[axis] = room / stride[axis] + 1;
  }
  return output;
}

double elements(const TensorShape& shape) { return static_cast<double>(shape.elements_per_sample()); }

TensorShape activation(Dims dims) { return TensorShape{.dims = std::move(dims)}; }

std::string lower_letters(std::size_t count, std::string_view reserved) {
  std::string letters;
  for (char letter = 'a'; letter <= 'z' && letters.size() < count; ++letter) {
    if (letter != 'n' && reserved.find(letter) == std::string_view::npos) letters.push_back(letter);
  }
  return letters;
}

std::string batch_and_letters(std::size_t count, std::string_view reserved) {
  std::string letters{'n'};
  letters += lower_letters(count, reserved);
  return letters;
}

Letters elementwise_letters(const Attributes&, const OperandShapes& shapes) {
  const std::string all = batch_and_letters(shapes.outputs[0].dims.size());
  return {.inputs = std::vector<std::string>(shapes.inputs.size(), all), .parameters = {}, .outputs = {all}};
}

Inference same_shape(const Attributes&, std::span<const TensorShape> inputs) {
  return {.outputs = {activation(real_dims(inputs, 0))}};
}

Saved nothing_saved(const Attributes&, const OperandShapes&) { return {}; }

}  // namespace millrace::ops
