// Offsets by greedy best fit, and aligned memory.
#include "kernels/arena.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <numeric>
#include <vector>

#include <sys/mman.h>

namespace millrace::kernels {
namespace {

bool alive_together(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

}  // namespace

std::int64_t assign_offsets(std::span<Lifetime> buffers) {
  std::vector<std::size_t> by_size(buffers.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](std::size_t a, std::size_t b) { return buffers[a].bytes > buffers[b].bytes; });

  std::vector<const Lifetime*> placed;  // by offset
  std::int64_t total = 0;
  for (const std::size_t index : by_size) {
    Lifetime& buffer = buffers[index];
    const std::int64_t bytes = aligned(buffer.bytes);
    std::int64_t end = 0;  // of the buffers passed so far
    std::int64_t best = -1;
    std::int64_t best_gap = std::numeric_limits<std::int64_t>::max();
    for (const Lifetime* other : placed) {
      if (!alive_together(buffer, *other)) continue;
      const std::int64_t gap = other->offset - end;
      if (gap >= bytes && gap < best_gap) {
        best = end;
        best_gap = gap;
      }
      end = std::max(end, other->offset + aligned(other->bytes));
    }
    buffer.offset = best >= 0 ? best : end;
    total = std::max(total, buffer.offset + bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), &buffer,
                                   [](const Lifetime* a, const Lifetime* b) { return a->offset < b->offset; }),
                  &buffer);
  }
  return total;
}

// malloc would keep the pages of blocks that come and go while work is measured: it takes them for its heap, where what
// is allocated behind them holds them.
Block::Block(std::int64_t bytes) : memory_(nullptr, Free{bytes}) {
  const auto size = static_cast<std::size_t>(bytes);
  if (bytes < kOwnPages) {
    memory_.reset(
        static_cast<std::byte*>(::operator new[](size, std::align_val_t{static_cast<std::size_t>(kAlignment)})));
  } else {
    void* pages = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    memory_.reset(static_cast<std::byte*>(pages));
  }
  std::memset(memory_.get(), 0, size);  // of new pages too: all that are only read would be one page, quick to read
}

void Block::Free::operator()(std::byte* memory) const {
  if (bytes < kOwnPages) {
    ::operator delete[](memory, std::align_val_t{static_cast<std::size_t>(kAlignment)});
  } else {
    ::munmap(memory, static_cast<std::size_t>(bytes));
  }
}

}  // namespace millrace::kernels
