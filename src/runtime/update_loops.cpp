// Leaf loops compiled for each vector width, and pieces of fixed length dealt to threads.
#include "runtime/update_loops.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/onednn/vector_clones.h"

namespace millrace::runtime {
namespace {

constexpr std::int64_t kPiece = 1 << 15;       // elements of one task
constexpr std::int64_t kWorthwhile = 1 << 17;  // elements for which another thread is woken

template <class Real>
MILLRACE_INLINE void plain_sgd_body(Real* weight, const Real* gradient, std::int64_t n, const SgdStep<Real>& s) {
  const SgdStep<Real> c = s;
  for (std::int64_t i = 0; i < n; ++i) weight[i] -= c.rate * (gradient[i] * c.scale + c.decay * weight[i]);
}

template <class Real>
MILLRACE_INLINE void sgd_body(Real* weight, const Real* gradient, Real* velocity, std::int64_t n,
                              const SgdStep<Real>& s) {
  const SgdStep<Real> c = s;
  if (c.nesterov) {
    for (std::int64_t i = 0; i < n; ++i) {
      const Real g = gradient[i] * c.scale + c.decay * weight[i];
      velocity[i] = c.momentum * velocity[i] + g;
      weight[i] -= c.rate * (g + c.momentum * velocity[i]);
    }
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const Real g = gradient[i] * c.scale + c.decay * weight[i];
    velocity[i] = c.momentum * velocity[i] + g;
    weight[i] -= c.rate * velocity[i];
  }
}

template <class Real>
MILLRACE_INLINE void adam_body(Real* weight, const Real* gradient, Real* first, Real* second, std::int64_t n,
                               const AdamStep<Real>& s) {
  const AdamStep<Real> c = s;
  for (std::int64_t i = 0; i < n; ++i) {
    const Real g = gradient[i] * c.scale + c.decay * weight[i];
    first[i] = c.beta1 * first[i] + (Real{1} - c.beta1) * g;
    second[i] = c.beta2 * second[i] + (Real{1} - c.beta2) * g * g;
    weight[i] = weight[i] * c.shrink - c.rate * first[i] / (std::sqrt(second[i]) * c.root_correction + c.epsilon);
  }
}

// Sixteen sums beside each other: independent additions, which vectors take together.
template <class Real>
MILLRACE_INLINE double squares_body(const Real* values, std::int64_t n) {
  std::array<double, 16> lanes{};
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (std::size_t k = 0; k < lanes.size(); ++k) {
      const auto v = static_cast<double>(values[i + static_cast<std::int64_t>(k)]);
      lanes[k] += v * v;
    }
  }
  for (std::size_t k = 0; i < n; ++i, ++k) lanes[k] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  for (std::size_t width = lanes.size() / 2; width > 0; width /= 2) {
    for (std::size_t k = 0; k < width; ++k) lanes[k] += lanes[k + width];
  }
  return lanes[0];
}

// A name each, since clones cannot be overloads or templates.
MILLRACE_VECTOR_CLONES void plain_sgd_32(float* w, const float* g, std::int64_t n, const SgdStep<float>& s) {
  plain_sgd_body(w, g, n, s);
}
MILLRACE_VECTOR_CLONES void plain_sgd_64(double* w, const double* g, std::int64_t n, const SgdStep<double>& s) {
  plain_sgd_body(w, g, n, s);
}
MILLRACE_VECTOR_CLONES void sgd_32(float* w, const float* g, float* v, std::int64_t n, const SgdStep<float>& s) {
  sgd_body(w, g, v, n, s);
}
MILLRACE_VECTOR_CLONES void sgd_64(double* w, const double* g, double* v, std::int64_t n, const SgdStep<double>& s) {
  sgd_body(w, g, v, n, s);
}
MILLRACE_VECTOR_CLONES void adam_32(float* w, const float* g, float* m, float* v, std::int64_t n,
                                    const AdamStep<float>& s) {
  adam_body(w, g, m, v, n, s);
}
MILLRACE_VECTOR_CLONES void adam_64(double* w, const double* g, double* m, double* v, std::int64_t n,
                                    const AdamStep<double>& s) {
  adam_body(w, g, m, v, n, s);
}
MILLRACE_VECTOR_CLONES double squares_32(const float* values, std::int64_t n) { return squares_body(values, n); }
MILLRACE_VECTOR_CLONES double squares_64(const double* values, std::int64_t n) { return squares_body(values, n); }

// f(begin, count) for pieces of [0, n).
template <class F>
void each_piece(std::int64_t n, F&& f) {
  if (n < kWorthwhile) {
    for (std::int64_t i = 0; i < n; i += kPiece) f(i, std::min(kPiece, n - i));
    return;
  }
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; i += kPiece) f(i, std::min(kPiece, n - i));
}

constexpr std::size_t kTotals = 64;  // pieces of one round of a sum, on the stack

template <class Real, class F>
double sum_pieces(const Real* values, std::int64_t n, F&& squares) {
  double sum = 0;
  const std::int64_t round = kPiece * static_cast<std::int64_t>(kTotals);
  for (std::int64_t first = 0; first < n; first += round) {
    std::array<double, kTotals> totals{};
    each_piece(std::min(round, n - first), [&](std::int64_t i, std::int64_t count) {
      totals[static_cast<std::size_t>(i / kPiece)] = squares(values + first + i, count);
    });
    for (const double total : totals) sum += total;
  }
  return sum;
}

}  // namespace

template <>
void plain_sgd_loop(float* w, const float* g, std::int64_t n, const SgdStep<float>& s) {
  each_piece(n, [&](std::int64_t i, std::int64_t count) { plain_sgd_32(w + i, g + i, count, s); });
}
template <>
void plain_sgd_loop(double* w, const double* g, std::int64_t n, const SgdStep<double>& s) {
  each_piece(n, [&](std::int64_t i, std::int64_t count) { plain_sgd_64(w + i, g + i, count, s); });
}
template <>
void sgd_loop(float* w, const float* g, float* v, std::int64_t n, const SgdStep<float>& s) {
  each_piece(n, [&](std::int64_t i, std::int64_t count) { sgd_32(w + i, g + i, v + i, count, s); });
}
template <>
void sgd_loop(double* w, const double* g, double* v, std::int64_t n, const SgdStep<double>& s) {
  each_piece(n, [&](std::int64_t i, std::int64_t count) { sgd_64(w + i, g + i, v + i, count, s); });
}
template <>
void adam_loop(float* w, const float* g, float* m, float* v, std::int64_t n, const AdamStep<float>& s) {
  each_piece(n, [&](std::int64_t i, std::int64_t count) { adam_32(w + i, g + i, m + i, v + i, count, s); });
}
template <>
void adam_loop(double* w, const double* g, double* m, double* v, std::int64_t n, const AdamStep<double>& s) {
  each_piece(n, [&](std::int64_t i, std::int64_t count) { adam_64(w + i, g + i, m + i, v + i, count, s); });
}

template <>
double sum_of_squares(const float* values, std::int64_t n) {
  return sum_pieces(values, n, squares_32);
}
template <>
double sum_of_squares(const double* values, std::int64_t n) {
  return sum_pieces(values, n, squares_64);
}

}  // namespace millrace::runtime
