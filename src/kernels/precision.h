// The number format that a stage computes in.
#pragma once

#include <cstdint>

namespace millrace::kernels {

enum class Precision : std::uint8_t { fp32, fp64 };

/// Bytes of one real element.
constexpr std::int64_t real_bytes(Precision precision) { return precision == Precision::fp64 ? 8 : 4; }

/// Bytes of one index element (labels, tokens).
inline constexpr std::int64_t kIndexBytes = 4;

}  // namespace millrace::kernels
