// The vectorised functions against the C library in double precision.
#include "kernels/onednn/vector_math.h"

#include <cmath>

#include <gtest/gtest.h>

namespace millrace::kernels::onednn {
namespace {

TEST(VectorMath, ExponentialIsExactToTwoUnits) {
  for (double x = -87; x < 88; x += 0.0137) {
    const auto at = static_cast<float>(x);
    EXPECT_NEAR(vector_exp(at) / std::exp(static_cast<double>(at)), 1, 2.4e-7) << x;
  }
  EXPECT_EQ(vector_exp(0), 1);
  EXPECT_LT(vector_exp(-1e30F), 2e-38F);
}

TEST(VectorMath, TanhAndNormalDistribution) {
  for (double x = -12; x < 12; x += 0.0113) {
    const auto at = static_cast<float>(x);
    const auto exact = static_cast<double>(at);
    EXPECT_NEAR(vector_tanh(at), std::tanh(exact), 2e-7) << x;
    const double cdf = 0.5 * std::erfc(-exact / std::sqrt(2.0));
    EXPECT_NEAR(vector_normal_cdf(at) / cdf, 1, 2e-5) << x;  // the tail's argument is rounded
    EXPECT_NEAR(vector_normal_cdf(at), cdf, 2e-7) << x;
  }
}

}  // namespace
}  // namespace millrace::kernels::onednn
