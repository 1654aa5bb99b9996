// Positions are 64-bit and signed where they are counted, unsigned where the standard containers are asked.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace {

/// The position as the standard containers take it; `index` is never negative.
constexpr std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace millrace
