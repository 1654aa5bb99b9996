// Futexes of a shared mapping.
#include "comm/node/bell.h"

#include <limits>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <ctime>

namespace millrace::comm {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "the kernel compares the plain word");

void Bell::ring() {
  rings_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
  syscall(SYS_futex, &rings_, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

void Bell::sleep(std::uint32_t seen, std::chrono::milliseconds longest) {
  timespec limit{};
  limit.tv_sec = longest.count() / 1000;
  limit.tv_nsec = longest.count() % 1000 * 1000000;
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, &rings_, FUTEX_WAIT, seen, &limit, nullptr, 0);
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace millrace::comm
