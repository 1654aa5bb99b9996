// A box inside a row-major array, copied to and from contiguous memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "graph/tensor.h"

namespace millrace::runtime {

struct Region {
  Dims extents;  ///< of the array
  Dims begin;    ///< of the box in it
  Dims size;

  std::int64_t elements() const { return element_count(size); }
};

/// f(first element in the array, elements) for each contiguous run of the box, in row-major order.
template <class F>
void each_run(const Region& region, F f) {
  if (region.elements() == 0) return;
  std::size_t fixed = region.size.size();  // dimensions before it are counted through
  std::int64_t run = 1, stride = 1;
  while (fixed > 0) {
    --fixed;
    run *= region.size[fixed];
    if (region.size[fixed] != region.extents[fixed]) break;
  }
  constexpr std::size_t kMaximumRank = 10;
  std::array<std::int64_t, kMaximumRank> strides{}, counter{};
  for (std::size_t i = region.size.size(); i-- > 0; stride *= region.extents[i]) strides[i] = stride;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < region.size.size(); ++i) at += region.begin[i] * strides[i];
  for (;;) {
    f(at, run);
    std::size_t i = fixed;
    while (i > 0) {
      --i;
      at += strides[i];
      if (++counter[i] < region.size[i]) break;
      at -= region.size[i] * strides[i];
      counter[i] = 0;
      if (i == 0) return;
    }
    if (fixed == 0) return;
  }
}

/// The box of `array`, packed.
inline void pack(const Region& region, const std::byte* array, std::int64_t element_bytes, std::byte* packed) {
  each_run(region, [&](std::int64_t at, std::int64_t count) {
    std::memcpy(packed, array + at * element_bytes, static_cast<std::size_t>(count * element_bytes));
    packed += count * element_bytes;
  });
}

/// And back.
inline void unpack(const Region& region, const std::byte* packed, std::int64_t element_bytes, std::byte* array) {
  each_run(region, [&](std::int64_t at, std::int64_t count) {
    std::memcpy(array + at * element_bytes, packed, static_cast<std::size_t>(count * element_bytes));
    packed += count * element_bytes;
  });
}

}  // namespace millrace::runtime
