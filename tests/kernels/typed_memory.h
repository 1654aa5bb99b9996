// Writes and reads the untyped buffers of an executable as lists of numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/width.h"
#include "kernels/bf16/numbers.h"
#include "kernels/precision.h"

namespace millrace::kernels::testing {

template <class T>
void write_as(void* memory, const std::vector<double>& values) {
  T* elements = static_cast<T*>(memory);
  for (const double value : values) *elements++ = static_cast<T>(value);
}

/// The format in which the reals of a tensor lie.
inline Precision format_of(const Tensor& tensor, Precision precision) {
  return precision == Precision::bf16 && is_wide(tensor) ? Precision::fp32 : precision;
}

/// `format`: of the numbers in memory, bf16 too.
inline void write(void* memory, const std::vector<double>& values, Precision format) {
  if (format == Precision::bf16) {
    auto* elements = static_cast<Bf16*>(memory);
    for (const double value : values) *elements++ = to_bf16(static_cast<float>(value));
  } else {
    format == Precision::fp64 ? write_as<double>(memory, values) : write_as<float>(memory, values);
  }
}

inline void write_indices(void* memory, const std::vector<double>& values) { write_as<std::int32_t>(memory, values); }

inline std::vector<double> read(const void* memory, std::int64_t count, Precision format) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(format == Precision::fp64   ? static_cast<const double*>(memory)[i]
                     : format == Precision::bf16 ? from_bf16(static_cast<const Bf16*>(memory)[i])
                                                 : static_cast<const float*>(memory)[i]);
  }
  return values;
}

}  // namespace millrace::kernels::testing
