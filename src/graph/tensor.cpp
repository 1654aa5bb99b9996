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

}  // namespace millrace
