// Signals that ask a run for a checkpoint: noted by each rank, agreed by all at the end of an iteration.
#pragma once

namespace millrace::runtime {

/// How often each was received: SIGTERM and SIGINT end the run after a checkpoint, SIGUSR1 lets it go on. Doubles,
/// since they travel with the sums that all ranks form anyway.
struct SignalCounts {
  double terminate = 0;
  double interrupt = 0;
  double user = 0;

  bool any() const { return ends() || user > 0; }
  bool ends() const { return terminate > 0 || interrupt > 0; }
  void add(const SignalCounts& more) {
    terminate += more.terminate;
    interrupt += more.interrupt;
    user += more.user;
  }
  /// The signal that the run ends with; 0: none.
  int number() const;
};

/// While it lives, the signals are noted and do nothing else. One at a time in a process.
class SignalWatch {
 public:
  /// \throws SystemError
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  /// What came since the last call.
  SignalCounts take();
};

}  // namespace millrace::runtime
