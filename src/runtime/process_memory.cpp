// Reads VmHWM from /proc.
#include "runtime/process_memory.h"

#include <fstream>
#include <sstream>
#include <string>

namespace millrace::runtime {

std::int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) != 0) continue;
    std::istringstream words(line.substr(6));
    std::int64_t kibibytes = 0;
    words >> kibibytes;
    return kibibytes * 1024;
  }
  return 0;
}

}  // namespace millrace::runtime
