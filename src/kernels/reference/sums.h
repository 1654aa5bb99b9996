// Inner loops that the compiler vectorises without reordering: sums in a fixed number of lanes, and a·x + y.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace::kernels::reference {

/// Σ term(i) for i < n, in 16 lanes that are added in order: the result depends on n and the terms alone.
template <class T, class Term>
T lane_sum(std::int64_t n, Term term) {
  constexpr std::int64_t kLanes = 16;
  std::array<T, kLanes> lanes{};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[static_cast<std::size_t>(lane)] += term(i + lane);
  }
  T sum = 0;
  for (const T lane : lanes) sum += lane;
  for (; i < n; ++i) sum += term(i);
  return sum;
}

/// Σ a[i]·b[i].
template <class T>
T dot(const T* a, const T* b, std::int64_t n) {
  return lane_sum<T>(n, [a, b](std::int64_t i) { return a[i] * b[i]; });
}

/// y += factor · x.
template <class T>
void add_scaled(T* __restrict y, T factor, const T* __restrict x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

/// y += x.
template <class T>
void add(T* __restrict y, const T* __restrict x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] += x[i];
}

}  // namespace millrace::kernels::reference
