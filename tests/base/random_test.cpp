// Random numbers are functions of their names alone.
#include "base/random.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(Random, IsAFunctionOfSeedNameStepSampleAndIndex) {
  const Random stream(1, "conv1.weight", 2, 3);
  EXPECT_EQ(stream.bits(5), Random(1, "conv1.weight", 2, 3).bits(5));
  const std::set<std::uint64_t> distinct{stream.bits(5),
                                         stream.bits(6),
                                         Random(2, "conv1.weight", 2, 3).bits(5),
                                         Random(1, "conv2.weight", 2, 3).bits(5),
                                         Random(1, "conv1.weight", 3, 3).bits(5),
                                         Random(1, "conv1.weight", 2, 4).bits(5)};
  EXPECT_EQ(distinct.size(), 6U);
}

TEST(Random, StepAndSampleDoNotAlias) {
  // (step 0, sample 1) and (step 1, sample 0) are different streams.
  EXPECT_NE(Random(1, "d", 0, 1).bits(0), Random(1, "d", 1, 0).bits(0));
}

TEST(Random, UniformAndNormalHaveTheirMoments) {
  const Random stream(7, "moments");
  constexpr int kCount = 100000;
  double uniform = 0, normal = 0, square = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double u = stream.uniform(i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    uniform += u;
    const double n = stream.normal(i);
    ASSERT_TRUE(std::isfinite(n));
    normal += n;
    square += n * n;
  }
  EXPECT_NEAR(uniform / kCount, 0.5, 0.005);
  EXPECT_NEAR(normal / kCount, 0.0, 0.02);
  EXPECT_NEAR(square / kCount, 1.0, 0.02);
}

TEST(Random, BelowStaysBelowAndReachesAll) {
  const Random stream(3, "below");
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 1000; ++i) seen.insert(stream.below(7, i));
  EXPECT_EQ(seen, (std::set<std::uint64_t>{0, 1, 2, 3, 4, 5, 6}));
}

}  // namespace
}  // namespace millrace
