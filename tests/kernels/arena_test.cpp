// Offsets of buffers with lifetimes: nothing overlaps, gaps are used.
#include "kernels/arena.h"

#include <cstddef>
#include <fstream>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <unistd.h>

#include "base/random.h"

namespace millrace::kernels {
namespace {

std::int64_t resident_pages() {
  std::int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident;
}

TEST(AssignOffsets, BuffersOfDifferentTimesShareTheirPlace) {
  // A chain: each buffer lives while it is made and read, so two places of the largest sizes are enough.
  std::vector<Lifetime> buffers{{100, 0, 1}, {100, 1, 2}, {100, 2, 3}, {100, 3, 4}};
  EXPECT_EQ(assign_offsets(buffers), 256);  // 100 takes two lines of 64
}

TEST(AssignOffsets, TakesTheSmallestGapThatHolds) {
  // The 320 of time 0 leaves two gaps at time 1: 128 wide and 64 wide.
  std::vector<Lifetime> buffers{{640, 0, 0}, {512, 0, 2}, {128, 1, 1}, {64, 1, 2}};
  EXPECT_EQ(assign_offsets(buffers), 640 + 512);
}

TEST(AssignOffsets, NothingAliveTogetherOverlapsAndTheTotalHoldsAll) {
  const Random random(1, "lifetimes");
  for (std::uint64_t trial = 0; trial < 200; ++trial) {
    std::vector<Lifetime> buffers;
    std::vector<std::int64_t> alive(30, 0);
    for (std::uint64_t i = 0; i < 25; ++i) {
      const std::uint64_t at = (trial * 25 + i) * 3;
      const auto first = static_cast<std::int64_t>(random.below(20, at));
      const auto last = first + static_cast<std::int64_t>(random.below(10, at + 1));
      buffers.push_back({static_cast<std::int64_t>(random.below(1000, at + 2)), first, last});
      for (std::int64_t t = first; t <= last; ++t) alive[static_cast<std::size_t>(t)] += aligned(buffers.back().bytes);
    }
    const std::int64_t total = assign_offsets(buffers);
    EXPECT_GE(total, *std::max_element(alive.begin(), alive.end()));
    for (std::size_t a = 0; a < buffers.size(); ++a) {
      EXPECT_EQ(buffers[a].offset % kAlignment, 0);
      EXPECT_LE(buffers[a].offset + buffers[a].bytes, total);
      for (std::size_t b = 0; b < a; ++b) {
        if (buffers[a].first > buffers[b].last || buffers[b].first > buffers[a].last) continue;
        EXPECT_TRUE(buffers[a].offset + buffers[a].bytes <= buffers[b].offset ||
                    buffers[b].offset + buffers[b].bytes <= buffers[a].offset);
      }
    }
  }
}

TEST(Block, IsAlignedAndZero) {
  const Block block(1000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.at(0)) % static_cast<std::uintptr_t>(kAlignment), 0u);
  for (std::int64_t i = 0; i < 1000; ++i) EXPECT_EQ(std::to_integer<int>(*block.at(i)), 0);
}

// malloc would take the second one for its heap, where what is allocated behind it holds its pages.
TEST(Block, LargeOnesLeaveTheProcessWhateverLiesBehindThem) {
  constexpr std::int64_t kBytes = 8 * Block::kOwnPages;
  std::vector<std::unique_ptr<std::byte[]>> behind;
  const std::int64_t before = resident_pages();
  for (int time = 0; time < 3; ++time) {
    const Block block(kBytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.at(0)) % static_cast<std::uintptr_t>(kAlignment), 0u);
    for (std::int64_t i = 0; i < kBytes; i += 1000) ASSERT_EQ(std::to_integer<int>(*block.at(i)), 0);
    *block.at(kBytes - 1) = std::byte{1};
    behind.push_back(std::make_unique<std::byte[]>(1000));
  }
  EXPECT_LT((resident_pages() - before) * ::sysconf(_SC_PAGESIZE), kBytes / 2);
}

}  // namespace
}  // namespace millrace::kernels
