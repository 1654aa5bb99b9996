// Brain floating point: the upper half of an fp32 number, as its bits.
#pragma once

#include <bit>
#include <cstdint>

namespace millrace::kernels {

using Bf16 = std::uint16_t;

constexpr float from_bf16(Bf16 bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U); }

/// Rounds to the nearest, ties to even; what is beyond the largest becomes infinite, NaN stays NaN.
constexpr Bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t nearest = bits + 0x7FFFU + ((bits >> 16U) & 1U);
  const std::uint32_t quiet = bits | 0x00400000U;  // a NaN whose upper half has a bit of its own
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  return static_cast<Bf16>((is_nan ? quiet : nearest) >> 16U);
}

}  // namespace millrace::kernels
