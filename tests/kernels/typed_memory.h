// Writes and reads the untyped buffers of an executable as lists of numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/precision.h"

namespace millrace::kernels::testing {

template <class T>
void write_as(void* memory, const std::vector<double>& values) {
  T* elements = static_cast<T*>(memory);
  for (const double value : values) *elements++ = static_cast<T>(value);
}

inline void write(void* memory, const std::vector<double>& values, Precision precision) {
  precision == Precision::fp64 ? write_as<double>(memory, values) : write_as<float>(memory, values);
}

inline void write_indices(void* memory, const std::vector<double>& values) { write_as<std::int32_t>(memory, values); }

inline std::vector<double> read(const void* memory, std::int64_t count, Precision precision) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(precision == Precision::fp64 ? static_cast<const double*>(memory)[i]
                                                  : static_cast<const float*>(memory)[i]);
  }
  return values;
}

}  // namespace millrace::kernels::testing
