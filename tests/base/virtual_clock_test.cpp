// The virtual clock: model time is exact, deadlines are kept from below, and lateness is told and not added up.
#include "base/virtual_clock.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(VirtualClock, ModelTimeIsTheSumOfWhatWasSpentAndReached) {
  VirtualClock clock(1.0);
  clock.start();
  clock.spend(5_ms);
  clock.spend(2_ms);
  EXPECT_DOUBLE_EQ(clock.now().value(), 0.007);
  clock.reach(12_ms);
  EXPECT_DOUBLE_EQ(clock.now().value(), 0.012);
  clock.reach(1_ms);  // over long ago
  EXPECT_DOUBLE_EQ(clock.now().value(), 0.012);
  EXPECT_GE(clock.elapsed(), clock.now() - Seconds(20e-6));
}

TEST(VirtualClock, ADilatedSecondLastsLonger) {
  VirtualClock clock(10.0);
  clock.start();
  const auto start = std::chrono::steady_clock::now();
  clock.spend(2_ms);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_GE(took.count(), 0.0199);
  EXPECT_DOUBLE_EQ(clock.now().value(), 0.002);
  EXPECT_GE(clock.elapsed().value(), 0.00199);
}

TEST(VirtualClock, LatenessIsToldAndDoesNotMoveModelTime) {
  VirtualClock clock(1.0);
  clock.start();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  clock.spend(10_ms);  // due 20 ms ago
  EXPECT_DOUBLE_EQ(clock.now().value(), 0.010);
  EXPECT_GE(clock.lateness().largest.value(), 0.020);
  EXPECT_TRUE(clock.is_over(15_ms)) << "the real clock is past it, though the rank is not";
  EXPECT_FALSE(clock.is_over(1000_s));
}

TEST(VirtualClock, ErrandsAreRunWhileItSleeps) {
  VirtualClock clock(1.0);
  clock.start();
  int errands = 0;
  clock.set_errand([&] { return ++errands < 3; });
  clock.spend(200_ms);
  EXPECT_EQ(errands, 3);
  EXPECT_DOUBLE_EQ(clock.now().value(), 0.2);
}

}  // namespace
}  // namespace millrace
