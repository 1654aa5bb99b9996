// Shapes in numbers and words.
#include "graph/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace millrace {

std::int64_t element_count(const Dims& dims) {
  std::int64_t count = 1;
  for (const std::int64_t d : dims) count *= d;
  return count;
}

std::string format(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

TensorShape as_reals(TensorShape shape) {
  constexpr std::int64_t kRealBytes = 4;
  if (shape.element != ElementType::byte) return shape;
  return {.dims = {shape.elements_per_sample() / kRealBytes}, .element = ElementType::real, .batched = shape.batched};
}

}  // namespace millrace
