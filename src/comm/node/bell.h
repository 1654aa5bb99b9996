// A counter in shared memory that threads of several processes sleep on: nobody spins, a ring wakes at once.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace millrace::comm {

/// All zero is a bell that never rang. A ring costs a system call only where somebody sleeps.
class Bell {
 public:
  std::uint32_t rings() const { return rings_.load(std::memory_order_seq_cst); }
  void ring();
  /// Sleeps until it has rung since `seen` of rings(), or for `longest`.
  void sleep(std::uint32_t seen, std::chrono::milliseconds longest);

 private:
  std::atomic<std::uint32_t> rings_;
  std::atomic<std::uint32_t> sleepers_;
};

}  // namespace millrace::comm
