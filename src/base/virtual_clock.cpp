// Sleeps with clock_nanosleep and TIMER_ABSTIME: an interrupted or late sleep has the same end.
#include "base/virtual_clock.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>

namespace millrace {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kNoSleep = 20'000;       // shorter than what a sleep costs: the next deadline makes up for it
constexpr std::int64_t kErrandPause = 500'000;  // between two errands

std::int64_t real_time() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::int64_t>(time.tv_sec) * kSecond + time.tv_nsec;
}

}  // namespace

void VirtualClock::start() {
  start_ = real_time();
  now_ = Seconds(0);
  deadlines_ = late_ = latest_ = 0;
}

Seconds VirtualClock::elapsed() const {
  return Seconds(static_cast<double>(real_time() - start_) / static_cast<double>(kSecond) / dilation_);
}

void VirtualClock::reach(Seconds time) {
  if (time <= now_) return;
  now_ = time;
  const std::int64_t due = start_ + std::llround(time.value() * dilation_ * static_cast<double>(kSecond));
  sleep_until(due);
  const std::int64_t late = std::max<std::int64_t>(0, real_time() - due);
  ++deadlines_;
  late_ += late;
  latest_ = std::max(latest_, late);
}

void VirtualClock::sleep_until(std::int64_t nanoseconds) {
  for (std::int64_t now = real_time(); nanoseconds - now > kNoSleep; now = real_time()) {
    const bool again = errand_ && errand_();
    const std::int64_t until = again ? std::min(nanoseconds, now + kErrandPause) : nanoseconds;
    const timespec wake{static_cast<std::time_t>(until / kSecond), static_cast<long>(until % kSecond)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, nullptr) == EINTR) {
    }
  }
}

Lateness VirtualClock::lateness() const {
  const auto seconds = [](double nanoseconds) { return Seconds(nanoseconds / static_cast<double>(kSecond)); };
  if (deadlines_ == 0) return {};
  return {seconds(static_cast<double>(late_) / static_cast<double>(deadlines_)), seconds(static_cast<double>(latest_))};
}

}  // namespace millrace
