// The values of each schedule, written out.
#include "runtime/learning_rate.h"

#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::runtime {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

std::vector<double> rates(const LearningRateOptions& options, double base, std::int64_t total) {
  std::vector<double> all;
  for (std::int64_t i = 0; i < total; ++i) all.push_back(learning_rate(options, base, i, total));
  return all;
}

TEST(LearningRate, ConstantStays) { EXPECT_THAT(rates({}, 0.25, 3), ElementsAre(0.25, 0.25, 0.25)); }

TEST(LearningRate, StepMultipliesAfterEveryFewIterations) {
  const LearningRateOptions halves{.kind = ScheduleKind::step, .every = 3, .factor = 0.5};
  EXPECT_THAT(rates(halves, 8.0, 8), ElementsAre(8, 8, 8, 4, 4, 4, 2, 2));
}

TEST(LearningRate, CosineFallsFromTheRateTowardsTheMinimum) {
  const LearningRateOptions cosine{.kind = ScheduleKind::cosine, .minimum = 0.2};
  const double eighth = std::sqrt(0.5);  // cos of an eighth of a turn
  EXPECT_THAT(rates(cosine, 1.0, 4), ElementsAre(DoubleEq(1.0), DoubleEq(0.2 + 0.4 * (1 + eighth)), DoubleEq(0.6),
                                                 DoubleEq(0.2 + 0.4 * (1 - eighth))));
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 1.0, 4, 4), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 1.0, 9, 4), 0.2) << "a longer run stays at the minimum";
}

TEST(LearningRate, WarmUpRisesInEqualStepsToTheRate) {
  EXPECT_THAT(rates({.warmup = 4}, 1.0, 6), ElementsAre(0.25, 0.5, 0.75, 1.0, 1.0, 1.0));
}

TEST(LearningRate, SchedulesCountFromTheEndOfTheWarmUp) {
  const LearningRateOptions step{.kind = ScheduleKind::step, .warmup = 2, .every = 2, .factor = 0.1};
  EXPECT_THAT(rates(step, 10.0, 6), ElementsAre(5, 10, 10, 10, DoubleEq(1), DoubleEq(1)));
  const LearningRateOptions cosine{.kind = ScheduleKind::cosine, .warmup = 2};
  EXPECT_THAT(rates(cosine, 1.0, 4), ElementsAre(0.5, 1.0, DoubleEq(1.0), DoubleEq(0.5)));
}

TEST(LearningRate, WarmUpAsLongAsTheRunNeverDividesByNothing) {
  EXPECT_THAT(rates({.kind = ScheduleKind::cosine, .warmup = 2}, 1.0, 2), ElementsAre(0.5, 1.0));
  EXPECT_DOUBLE_EQ(learning_rate({.kind = ScheduleKind::cosine, .warmup = 2}, 1.0, 2, 2), 1.0);
}

}  // namespace
}  // namespace millrace::runtime
