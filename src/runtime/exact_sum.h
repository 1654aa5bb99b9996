// A sum that does not depend on the order of its terms: each is cut into limbs whose sums are exact in double.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace millrace::runtime {

/// Limb k holds multiples of 2^(30k−60) below 2^30 of them, so up to 2^23 terms add without rounding, on one rank or
/// over many, in any order. What is below 2^−60 of a term is left out; a term that is no number or of 2^90 or more
/// makes the sum what it would make any sum.
inline constexpr std::size_t kExactLimbs = 5;

void add_exactly(double term, std::span<double, kExactLimbs> limbs);
double value_of(std::span<const double, kExactLimbs> limbs);

}  // namespace millrace::runtime
