// Cuts by truncation, from the highest limb down.
#include "runtime/exact_sum.h"

#include <cmath>

namespace millrace::runtime {
namespace {

constexpr int kLimbBits = 30, kLowestBit = -60;
constexpr double kLargest = 1.2379400392853803e27;  // 2^90

int lowest_bit(std::size_t limb) { return kLowestBit + kLimbBits * static_cast<int>(limb); }

}  // namespace

void add_exactly(double term, std::span<double, kExactLimbs> limbs) {
  if (!(std::abs(term) < kLargest)) {
    limbs.back() += term;
    return;
  }
  for (std::size_t limb = kExactLimbs; limb-- > 0;) {
    const double part = std::ldexp(std::trunc(std::ldexp(term, -lowest_bit(limb))), lowest_bit(limb));
    limbs[limb] += part;
    term -= part;
  }
}

double value_of(std::span<const double, kExactLimbs> limbs) {
  double sum = 0;
  for (const double limb : limbs) sum += limb;
  return sum;
}

}  // namespace millrace::runtime
