// A thread that looks at the age of the current wait a few times within its limit.
#include "runtime/watchdog.h"

#include <algorithm>

namespace millrace::runtime {

using std::chrono::nanoseconds;

Watchdog::Watchdog(Seconds limit, std::function<void(std::int64_t, Seconds)> expired)
    : limit_(static_cast<std::int64_t>(limit.value() * 1e9)),
      expired_(std::move(expired)),
      thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stop_signal_.notify_one();
  thread_.join();
}

void Watchdog::waiting() {
  since_.store(nanoseconds(Clock::now().time_since_epoch()).count(), std::memory_order_release);
}

void Watchdog::finished() { since_.store(-1, std::memory_order_release); }

void Watchdog::watch() {
  const nanoseconds pause =
      std::clamp(limit_ / 8, nanoseconds(std::chrono::milliseconds(1)), nanoseconds(std::chrono::seconds(1)));
  std::unique_lock lock(mutex_);
  Clock::time_point looked = Clock::now();
  Clock::time_point awake = looked;
  while (!stop_signal_.wait_for(lock, pause, [this] { return stop_; })) {
    const Clock::time_point now = Clock::now();
    if (now - looked > limit_) awake = now;  // this process was stopped itself (a suspended job): its waits begin anew
    looked = now;
    const std::int64_t since = since_.load(std::memory_order_acquire);
    if (since < 0) continue;
    const nanoseconds waited = now - std::max(awake, Clock::time_point(nanoseconds(since)));
    if (waited < limit_) continue;
    expired_(code_.load(std::memory_order_relaxed), Seconds(static_cast<double>(waited.count()) * 1e-9));
    return;
  }
}

}  // namespace millrace::runtime
