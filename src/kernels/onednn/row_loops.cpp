// Loops along rows: leaf functions that are compiled for each vector width, and their entry points.
#include "kernels/onednn/row_loops.h"

#include <algorithm>

#include "kernels/onednn/parallel.h"
#include "kernels/onednn/vector_math.h"

namespace millrace::kernels::onednn {
namespace {

constexpr std::int64_t kLanes = 16;
constexpr std::int64_t kColumns = 512;   // of one task of a column sum, at most: their sums stay in the first cache
constexpr std::int64_t kRowBlock = 128;  // rows summed before they join the total, which keeps rounding small

// Sixteen partial sums in a fixed order: the same result for every vector width but for fused multiply-adds.
template <class Term>
MILLRACE_INLINE float lane_sum(std::int64_t n, Term term) {
  float lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] += term(i + l);
  }
  for (std::int64_t l = 0; i < n; ++i, ++l) lanes[l] += term(i);
  for (std::int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::int64_t l = 0; l < width; ++l) lanes[l] += lanes[l + width];
  }
  return lanes[0];
}

MILLRACE_VECTOR_CLONES float sum_loop(const float* x, std::int64_t n) {
  return lane_sum(n, [=](std::int64_t i) { return x[i]; });
}

MILLRACE_VECTOR_CLONES float dot_loop(const float* x, const float* y, std::int64_t n) {
  return lane_sum(n, [=](std::int64_t i) { return x[i] * y[i]; });
}

MILLRACE_VECTOR_CLONES float squares_loop(const float* x, float mean, std::int64_t n) {
  return lane_sum(n, [=](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); });
}

MILLRACE_VECTOR_CLONES float projection_loop(const float* a, const float* b, const float* x, float mean,
                                             std::int64_t n) {
  return lane_sum(n, [=](std::int64_t i) { return a[i] * b[i] * (x[i] - mean); });
}

MILLRACE_VECTOR_CLONES float max_loop(const float* x, std::int64_t n) {
  float lanes[kLanes];
  for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] = x[0];
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] = x[i + l] > lanes[l] ? x[i + l] : lanes[l];
  }
  float result = lanes[0];
  for (std::int64_t l = 1; l < kLanes; ++l) result = std::max(result, lanes[l]);
  for (; i < n; ++i) result = std::max(result, x[i]);
  return result;
}

MILLRACE_VECTOR_CLONES void exp_loop(const float* x, float shift, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = vector_exp(x[i] - shift);
}

MILLRACE_VECTOR_CLONES void scale_loop(float* x, float factor, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] *= factor;
}

MILLRACE_VECTOR_CLONES void add_loop(float* x, const float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] += y[i];
}

MILLRACE_VECTOR_CLONES void add_bf16_loop(float* x, const Bf16* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] += from_bf16(y[i]);
}

MILLRACE_VECTOR_CLONES void sum_of_loop(const float* x, const float* y, float* z, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) z[i] = x[i] + y[i];
}

MILLRACE_VECTOR_CLONES void product_loop(const float* x, const float* y, float* z, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) z[i] = x[i] * y[i];
}

MILLRACE_VECTOR_CLONES void softmax_gradient_loop(const float* p, const float* x, float shift, float factor, float* z,
                                                  std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) z[i] = p[i] * (x[i] - shift) * factor;
}

MILLRACE_VECTOR_CLONES void stop_loop(const float* y, float* gradient, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) gradient[i] = y[i] > 0 ? gradient[i] : 0.0F;
}

void add_to(float* x, const float* y, std::int64_t n) { add_loop(x, y, n); }
void add_to(float* x, const Bf16* y, std::int64_t n) { add_bf16_loop(x, y, n); }

template <class T>
void add_columns(int threads, const T* x, std::int64_t rows, std::int64_t columns, float* totals) {
  const std::int64_t strip = std::min(kColumns, columns_of_thread(columns, threads));
  parallel_chunks(threads, columns, strip, rows * columns, [=](std::int64_t begin, std::int64_t end) {
    float block[kColumns];
    for (std::int64_t first = 0; first < rows; first += kRowBlock) {
      std::fill(block, block + (end - begin), 0.0F);
      for (std::int64_t r = first; r < std::min(rows, first + kRowBlock); ++r) {
        add_to(block, x + r * columns + begin, end - begin);
      }
      add_loop(totals + begin, block, end - begin);
    }
  });
}

}  // namespace

float row_sum(const float* x, std::int64_t n) { return sum_loop(x, n); }
float row_max(const float* x, std::int64_t n) { return max_loop(x, n); }
float row_dot(const float* x, const float* y, std::int64_t n) { return dot_loop(x, y, n); }
float row_squares(const float* x, float mean, std::int64_t n) { return squares_loop(x, mean, n); }

float row_projection(const float* a, const float* b, const float* x, float mean, std::int64_t n) {
  return projection_loop(a, b, x, mean, n);
}

float row_exp(const float* x, float shift, float* y, std::int64_t n) {
  exp_loop(x, shift, y, n);
  return sum_loop(y, n);
}

void row_scale(float* x, float factor, std::int64_t n) { scale_loop(x, factor, n); }
void row_add(float* x, const float* y, std::int64_t n) { add_loop(x, y, n); }
void row_sum_of(const float* x, const float* y, float* z, std::int64_t n) { sum_of_loop(x, y, z, n); }
void row_product(const float* x, const float* y, float* z, std::int64_t n) { product_loop(x, y, z, n); }

void row_softmax_gradient(const float* p, const float* x, float shift, float factor, float* z, std::int64_t n) {
  softmax_gradient_loop(p, x, shift, factor, z, n);
}

void stop_below_zero(int threads, const float* y, float* gradient, std::int64_t n) {
  parallel_elements(threads, n,
                    [=](std::int64_t begin, std::int64_t end) { stop_loop(y + begin, gradient + begin, end - begin); });
}

void add_column_sums(int threads, const float* x, std::int64_t rows, std::int64_t columns, float* totals) {
  add_columns(threads, x, rows, columns, totals);
}

void add_column_sums(int threads, const Bf16* x, std::int64_t rows, std::int64_t columns, float* totals) {
  add_columns(threads, x, rows, columns, totals);
}

}  // namespace millrace::kernels::onednn
