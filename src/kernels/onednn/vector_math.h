// Exponential, tanh and the normal distribution in single precision, written so that loops over them vectorise.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/onednn/vector_clones.h"

namespace millrace::kernels::onednn {

/// e^x to 1 unit in the last place or two, for x clamped to [-87, 88]. Cephes' polynomial after Cody-Waite reduction.
MILLRACE_INLINE float vector_exp(float x) {
  x = x < -87.0F ? -87.0F : x;
  x = x > 88.0F ? 88.0F : x;
  // Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low bits.
  const float shifted = x * 1.44269504F + 12582912.0F;
  const float n = shifted - 12582912.0F;
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const std::int32_t exponent = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(12582912.0F) + 127;
  return p * std::bit_cast<float>(exponent << 23);
}

/// tanh(x), absolute error about 1e-7.
MILLRACE_INLINE float vector_tanh(float x) { return 1.0F - 2.0F / (vector_exp(2.0F * x) + 1.0F); }

/// Distribution function of the standard normal, relative error about 1e-7 (erfc of Numerical Recipes 6.2).
MILLRACE_INLINE float vector_normal_cdf(float x) {
  const float z = (x < 0 ? -x : x) * 0.707106781F;
  const float t = 1.0F / (1.0F + 0.5F * z);
  float p = 0.17087277F;
  p = p * t - 0.82215223F;
  p = p * t + 1.48851587F;
  p = p * t - 1.13520398F;
  p = p * t + 0.27886807F;
  p = p * t - 0.18628806F;
  p = p * t + 0.09678418F;
  p = p * t + 0.37409196F;
  p = p * t + 1.00002368F;
  p = p * t - 1.26551223F;
  const float tail = 0.5F * t * vector_exp(p - z * z);
  return x < 0 ? tail : 1.0F - tail;
}

}  // namespace millrace::kernels::onednn
