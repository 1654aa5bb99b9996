// The gradient of a linear layer's weight as the rows that it is made of, dW = dYᵀ · X, instead of as a whole.
#pragma once

#include <algorithm>
#include <cstdint>

namespace millrace {

/// Row after row, x and dy of each: `rows` times inputs + outputs numbers in place of inputs · outputs.
struct FactoredShape {
  std::int64_t rows = 0;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;

  std::int64_t width() const { return inputs + outputs; }
  std::int64_t elements() const { return rows * width(); }
  /// Rows of dW, one for each output, that are made at once: what fits into a second-level cache, and one at least.
  std::int64_t outputs_of_part() const {
    constexpr std::int64_t kPart = std::int64_t{1} << 19;
    return std::clamp<std::int64_t>(kPart / inputs, 1, outputs);
  }
  std::int64_t part_elements() const { return outputs_of_part() * inputs; }

  bool operator==(const FactoredShape&) const = default;
};

}  // namespace millrace
