// The clock of runs on real devices.
#include "runtime/clock.h"

#include <chrono>

namespace millrace::runtime {

Clock steady_clock() {
  return [] {
    return Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count());
  };
}

}  // namespace millrace::runtime
