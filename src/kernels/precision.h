// The number formats that a stage trains in: of its weights, and of the tensors between its operators.
#pragma once

#include <cstdint>
#include <string_view>

namespace millrace::kernels {

/// bf16: operators compute in fp32, weights stay fp32, the tensors between operators are bf16 (bf16/bf16_factory.h).
enum class Precision : std::uint8_t { fp32, bf16, fp64 };

/// As experiments and profiles name it.
constexpr std::string_view name(Precision precision) {
  if (precision == Precision::fp64) return "fp64";
  return precision == Precision::bf16 ? "bf16" : "fp32";
}

/// Bytes of one number that is computed with or kept: of weights, gradients of weights, optimizer state, losses.
constexpr std::int64_t real_bytes(Precision precision) { return precision == Precision::fp64 ? 8 : 4; }

/// Bytes of one real element of a tensor between operators (graph/width.h says which are as wide as weights).
constexpr std::int64_t carried_bytes(Precision precision) {
  return precision == Precision::bf16 ? 2 : real_bytes(precision);
}

/// Bytes of one index element (labels, tokens).
inline constexpr std::int64_t kIndexBytes = 4;

}  // namespace millrace::kernels
