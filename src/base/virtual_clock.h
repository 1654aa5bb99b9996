// The time of one rank on a modelled machine, held to the real clock by absolute deadlines.
#pragma once

#include <cstdint>
#include <functional>

#include "base/units.h"

namespace millrace {

/// How long after its deadline the rank went on, in real time: what the machine that emulates adds.
struct Lateness {
  Seconds mean{};
  Seconds largest{};
};

/// Model time moves only when the rank works or waits for something modelled, so it does not depend on the machine.
/// Model time t is due `dilation` · t after start(): the rank sleeps until then and never from when it woke up, so
/// lateness does not add up. One thread uses it.
class VirtualClock {
 public:
  /// \param dilation  real seconds of a model second; positive.
  explicit VirtualClock(double dilation) : dilation_(dilation) {}

  double dilation() const { return dilation_; }

  /// Model time 0 is now.
  void start();

  /// How far the rank is.
  Seconds now() const { return now_; }
  /// Real time since start(), as model time.
  Seconds elapsed() const;

  /// The rank works: returns when `time` more is over.
  void spend(Seconds time) { reach(now_ + time); }
  /// Returns when model time `time` is due; at once where the rank is further.
  void reach(Seconds time);
  /// Whether reach(time) would return without waiting.
  bool is_over(Seconds time) const { return time <= now_ || time <= elapsed(); }

  Lateness lateness() const;

  /// Called while the rank sleeps, again and again as long as it returns true.
  void set_errand(std::function<bool()> errand) { errand_ = std::move(errand); }

 private:
  void sleep_until(std::int64_t nanoseconds);

  double dilation_;
  Seconds now_{};
  std::int64_t start_ = 0;  // nanoseconds of the monotonic clock
  std::int64_t deadlines_ = 0;
  std::int64_t late_ = 0;  // nanoseconds, summed over all deadlines
  std::int64_t latest_ = 0;
  std::function<bool()> errand_;
};

}  // namespace millrace
