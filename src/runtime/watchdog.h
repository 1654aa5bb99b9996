// Ends the job when a wait lasts too long, naming the rank and the operation (METHODS 8: never hang).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "base/units.h"
#include "comm/transport.h"

namespace millrace::runtime {

/// Watches the waits of one rank. An operation is told by a code that `expired` can turn into words, so that watching
/// costs two stores.
class Watchdog final : public comm::WaitObserver {
 public:
  /// \param expired  called once, on the watchdog's thread, with the code of the late operation; it ends the job.
  Watchdog(Seconds limit, std::function<void(std::int64_t code, Seconds waited)> expired);
  ~Watchdog() override;
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// What the next waits are for.
  void operation(std::int64_t code) { code_.store(code, std::memory_order_relaxed); }

  void waiting() override;
  void finished() override;

 private:
  using Clock = std::chrono::steady_clock;
  void watch();

  std::chrono::nanoseconds limit_;
  std::function<void(std::int64_t, Seconds)> expired_;
  std::atomic<std::int64_t> code_{-1};
  std::atomic<std::int64_t> since_{-1};  // nanoseconds of Clock when the wait began; -1: no wait
  std::mutex mutex_;
  std::condition_variable stop_signal_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace millrace::runtime
