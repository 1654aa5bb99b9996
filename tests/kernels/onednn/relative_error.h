// How far a list of numbers is from another, relative to the length of the other.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace millrace::kernels::testing {

/// |a − b| / |b| in the Euclidean norm; |a − b| where b is zero; infinite where sizes differ or a is not a number.
inline double relative_error(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double difference = 0;
  double length = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    length += b[i] * b[i];
  }
  if (std::isnan(difference)) return INFINITY;
  return length > 0 ? std::sqrt(difference / length) : std::sqrt(difference);
}

}  // namespace millrace::kernels::testing
