// Parts of a range that differ by one at most.
#pragma once

#include <cstdint>

namespace millrace {

/// Elements from `begin` to before `end`.
struct ElementRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  bool operator==(const ElementRange&) const = default;
};

/// The `index`-th of `parts` parts of 0 … count: in order, the first count mod parts of them one longer. Parts of less
/// than `parts` elements may be empty.
constexpr ElementRange even_part(std::int64_t count, std::int64_t parts, std::int64_t index) {
  const std::int64_t each = count / parts, longer = count % parts;
  const std::int64_t begin = index * each + (index < longer ? index : longer);
  return {begin, begin + each + (index < longer ? 1 : 0)};
}

}  // namespace millrace
