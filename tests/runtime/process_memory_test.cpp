// What the operating system says of this process.
#include "runtime/process_memory.h"

#include <vector>

#include <gtest/gtest.h>

namespace millrace::runtime {
namespace {

TEST(ProcessMemory, PeakCountsTouchedPagesInBytesAndKeepsThem) {
  constexpr std::int64_t kBytes = 32 << 20;
  std::int64_t touched = 0;
  {
    const std::vector<char> pages(kBytes, 1);  // written, so resident
    touched = peak_resident_bytes();
    EXPECT_EQ(pages[kBytes / 2], 1);
  }
  EXPECT_GT(touched, kBytes);
  EXPECT_LT(touched, std::int64_t{1} << 40) << "a unit too large";
  EXPECT_GT(peak_resident_bytes(), kBytes) << "the pages are given back by now, the peak stays";
}

}  // namespace
}  // namespace millrace::runtime
