// Draws that depend on nothing but their names, and expectations of the largest of many.
#include "sim/noise.h"

#include <gmock/gmock.h>

#include "sim/run.h"
#include "sim/sample_job.h"

namespace millrace::sim {
namespace {

TEST(Noise, ExpectedMaximumOfNormalNumbers) {
  // Tables of order statistics.
  EXPECT_EQ(expected_normal_maximum(1), 0);
  EXPECT_NEAR(expected_normal_maximum(2), 0.56419, 1e-5);
  EXPECT_NEAR(expected_normal_maximum(10), 1.53875, 1e-5);
  EXPECT_NEAR(expected_normal_maximum(1000), 3.24144, 1e-5);
}

TEST(Noise, ExpectedMaximumGrowsWithTheRanks) {
  for (const Shape shape : {Shape::lognormal, Shape::exponential}) {
    const Noise noise{.shape = shape, .spread = 0.1};
    double before = 1;
    for (const std::int64_t n : {2, 8, 64, 1000, 1001, 100000}) {
      const double now = expected_maximum(noise, n);
      EXPECT_GT(now, before);
      before = now;
    }
  }
  EXPECT_DOUBLE_EQ(expected_maximum({.shape = Shape::exponential, .spread = 0.1}, 2), 1.05);  // 1 + 0.1 (1 + 1/2 − 1)
}

TEST(Noise, FactorsHaveMeanOneAndTheirVariance) {
  for (const Shape shape : {Shape::lognormal, Shape::exponential}) {
    const Noise noise{.shape = shape, .spread = 0.2};
    const NoiseSource source(noise);
    constexpr int kDraws = 20000;
    double sum = 0, squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double factor = source.factor(i % 100, i / 100);
      sum += factor;
      squares += factor * factor;
    }
    const double mean = sum / kDraws;
    EXPECT_NEAR(mean, 1, 0.005);
    EXPECT_NEAR(squares / kDraws - mean * mean, variance(noise), 0.003);
  }
}

TEST(Noise, StragglersDoNotDependOnHowManyRanksThereAre) {
  const std::vector<Straggler> few = random_stragglers(3, 100, 0.1, 2.0);
  const std::vector<Straggler> many = random_stragglers(3, 10000, 0.1, 2.0);
  ASSERT_GT(few.size(), 2u);
  for (std::size_t i = 0; i < few.size(); ++i) EXPECT_EQ(few[i].rank, many[i].rank);
  EXPECT_NEAR(static_cast<double>(many.size()), 1000, 100);
}

TEST(Noise, RunsRepeatBySeed) {
  const SampleJob pipeline = sample_job({});
  const Job job = grid(pipeline.job, 2, 2, pipeline.reach);
  Options options;
  options.noise = {.shape = Shape::lognormal, .spread = 0.1, .seed = 7};
  const Seconds first = run(job, options).makespan;
  EXPECT_EQ(run(job, options).makespan, first);
  options.noise.seed = 8;
  EXPECT_NE(run(job, options).makespan, first);
}

}  // namespace
}  // namespace millrace::sim
