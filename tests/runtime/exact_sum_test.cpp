// The order of the terms changes no bit.
#include "runtime/exact_sum.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace millrace::runtime {
namespace {

double sum_of(const std::vector<double>& terms) {
  std::array<double, kExactLimbs> limbs{};
  for (const double term : terms) add_exactly(term, limbs);
  return value_of(limbs);
}

TEST(ExactSum, CancellationLosesNothing) { EXPECT_EQ(sum_of({1e20, 0.25, -1e20, 0.5}), 0.75); }

TEST(ExactSum, EveryOrderGivesTheSameBits) {
  const Random random(5, "terms");
  std::vector<double> terms(1000);
  for (std::size_t i = 0; i < terms.size(); ++i)
    terms[i] = random.normal(i) * std::pow(10, random.uniform(i + 5000) * 12 - 6);
  const double expected = sum_of(terms);
  EXPECT_NEAR(expected, std::accumulate(terms.begin(), terms.end(), 0.0), 1e-9);
  std::sort(terms.begin(), terms.end());
  EXPECT_EQ(sum_of(terms), expected);
  EXPECT_NE(std::accumulate(terms.begin(), terms.end(), 0.0), expected);
}

TEST(ExactSum, WhatIsNoNumberStaysNone) {
  EXPECT_TRUE(std::isnan(sum_of({1.0, std::numeric_limits<double>::quiet_NaN()})));
  EXPECT_TRUE(std::isinf(sum_of({1.0, std::numeric_limits<double>::infinity()})));
}

}  // namespace
}  // namespace millrace::runtime
