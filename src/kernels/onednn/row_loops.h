// Vectorised loops along one contiguous row of floats, and sums over the columns of a matrix.
#pragma once

#include <cstdint>

#include "kernels/bf16/numbers.h"

namespace millrace::kernels::onednn {

float row_sum(const float* x, std::int64_t n);
float row_max(const float* x, std::int64_t n);
float row_dot(const float* x, const float* y, std::int64_t n);
/// Sum of (x - mean)^2.
float row_squares(const float* x, float mean, std::int64_t n);
/// Sum of a * b * (x - mean).
float row_projection(const float* a, const float* b, const float* x, float mean, std::int64_t n);
/// y = e^(x - shift); returns their sum. y may be x.
float row_exp(const float* x, float shift, float* y, std::int64_t n);

void row_scale(float* x, float factor, std::int64_t n);                      ///< x *= factor
void row_add(float* x, const float* y, std::int64_t n);                      ///< x += y
void row_sum_of(const float* x, const float* y, float* z, std::int64_t n);   ///< z = x + y
void row_product(const float* x, const float* y, float* z, std::int64_t n);  ///< z = x * y
/// z = p * (x - shift) * factor: the backward pass of softmax with p its output.
void row_softmax_gradient(const float* p, const float* x, float shift, float factor, float* z, std::int64_t n);

/// gradient = 0 where y <= 0: the backward pass of ReLU with y its output, in place.
void stop_below_zero(int threads, const float* y, float* gradient, std::int64_t n);

/// totals[c] += sum over rows of x[r, c], rows in order: x is [rows, columns], `threads` share the columns.
void add_column_sums(int threads, const float* x, std::int64_t rows, std::int64_t columns, float* totals);
void add_column_sums(int threads, const Bf16* x, std::int64_t rows, std::int64_t columns, float* totals);

}  // namespace millrace::kernels::onednn
