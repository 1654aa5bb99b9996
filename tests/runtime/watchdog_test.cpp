// A late wait is told once, with the operation that it was for; waits that end are not told.
#include "runtime/watchdog.h"

#include <future>
#include <thread>

#include <gtest/gtest.h>

namespace millrace::runtime {
namespace {

constexpr auto kForever = std::chrono::seconds(60);

TEST(Watchdog, TellsTheOperationOfALateWait) {
  std::promise<std::pair<std::int64_t, Seconds>> told;
  Watchdog watchdog(10_ms, [&](std::int64_t code, Seconds waited) { told.set_value({code, waited}); });
  watchdog.operation(7);
  watchdog.waiting();
  watchdog.finished();
  watchdog.operation((std::int64_t{3} << 32) | 42);
  watchdog.waiting();
  auto late = told.get_future();
  ASSERT_EQ(late.wait_for(kForever), std::future_status::ready);
  const auto [code, waited] = late.get();
  EXPECT_EQ(code, (std::int64_t{3} << 32) | 42);
  EXPECT_GE(waited, 10_ms);
}

TEST(Watchdog, WaitsThatEndAreNotLateHoweverManyTheyAre) {
  using Clock = std::chrono::steady_clock;
  std::atomic<int> told{0};
  Clock::duration longest{};
  {
    Watchdog watchdog(100_ms, [&](std::int64_t, Seconds) { ++told; });
    const Clock::time_point start = Clock::now();
    // Three limits in all: one clock for all waits, or a clock that finished() does not stop, would run out.
    while (Clock::now() - start < std::chrono::milliseconds(300)) {
      const Clock::time_point begin = Clock::now();
      watchdog.waiting();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      watchdog.finished();
      longest = std::max(longest, Clock::now() - begin);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  // A machine that stopped this thread for so long made the wait late in truth.
  if (longest < std::chrono::milliseconds(100)) {
    EXPECT_EQ(told, 0);
  }
}

TEST(Watchdog, TimeBeforeAndAfterAWaitIsNoWait) {
  using Clock = std::chrono::steady_clock;
  std::atomic<int> told{0};
  Clock::duration waited{};
  {
    Watchdog watchdog(20_ms, [&](std::int64_t, Seconds) { ++told; });
    watchdog.operation(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(80));
    const Clock::time_point begin = Clock::now();
    watchdog.waiting();
    watchdog.finished();
    waited = Clock::now() - begin;
    std::this_thread::sleep_for(std::chrono::milliseconds(80));
  }
  if (waited < std::chrono::milliseconds(20)) {
    EXPECT_EQ(told, 0);
  }
}

}  // namespace
}  // namespace millrace::runtime
