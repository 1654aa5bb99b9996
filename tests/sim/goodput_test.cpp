// The renewal formula against failures that are drawn one by one.
#include "sim/goodput.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/random.h"

namespace millrace::sim {
namespace {

TEST(Goodput, IsWhatDrawnFailuresLeave) {
  const Failures failures{.mean_time_between = Seconds(50000),
                          .devices = 10,
                          .restart = Seconds(300),
                          .checkpoint = Seconds(20),
                          .checkpoint_every = Seconds(600)};
  const Random draw(1, "failures");
  std::uint64_t index = 0;
  double wall = 0;
  constexpr int kSegments = 20000;
  for (int done = 0; done < kSegments;) {
    const double failure = -std::log1p(-draw.uniform(index++)) * 5000;
    if (failure >= 620) {
      wall += 620;
      ++done;
    } else {
      wall += failure + 300;
    }
  }
  EXPECT_NEAR(goodput(failures).fraction, kSegments * 600 / wall, 0.005);
  EXPECT_DOUBLE_EQ(goodput(failures).failures_per_day, 86400.0 / 5000);
}

TEST(Goodput, BestIntervalIsNearYoungs) {
  Failures failures{
      .mean_time_between = Seconds(5e9), .devices = 100000, .restart = Seconds(600), .checkpoint = Seconds(5)};
  const Goodput best = goodput(failures);
  const double young = std::sqrt(2 * 5 * 50000.0);
  EXPECT_NEAR(best.checkpoint_every.value() / young, 1, 0.01);
  for (const double factor : {0.8, 1.25}) {
    failures.checkpoint_every = best.checkpoint_every * factor;
    EXPECT_LT(goodput(failures).fraction, best.fraction);
  }
}

TEST(Goodput, FreeCheckpointsLeaveOnlyRestarts) {
  const Failures failures{.mean_time_between = Seconds(9000), .devices = 10, .restart = Seconds(100)};
  EXPECT_DOUBLE_EQ(goodput(failures).fraction, 0.9);
}

}  // namespace
}  // namespace millrace::sim
