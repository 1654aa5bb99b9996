// Sums of tensors between operators.
#pragma once

#include <cstdint>

#include "kernels/bf16/loops.h"
#include "kernels/precision.h"

namespace millrace::kernels {

/// destination += source, element by element; each sum is rounded once.
inline void add_values(void* destination, const void* source, std::int64_t count, Precision precision) {
  const auto add = [count](auto* to, const auto* from) {
    for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
  };
  if (precision == Precision::fp64) {
    add(static_cast<double*>(destination), static_cast<const double*>(source));
  } else if (precision == Precision::bf16) {
    add_bf16(static_cast<Bf16*>(destination), static_cast<const Bf16*>(source), count);
  } else {
    add(static_cast<float*>(destination), static_cast<const float*>(source));
  }
}

}  // namespace millrace::kernels
