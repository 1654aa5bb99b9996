// Offsets by greedy best fit, and aligned memory.
#include "kernels/arena.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <numeric>
#include <vector>

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

Block::Block(std::int64_t bytes)
    : memory_(static_cast<std::byte*>(
          ::operator new[](static_cast<std::size_t>(bytes), std::align_val_t{static_cast<std::size_t>(kAlignment)}))) {
  std::memset(memory_.get(), 0, static_cast<std::size_t>(bytes));
}

void Block::Free::operator()(std::byte* memory) const {
  ::operator delete[](memory, std::align_val_t{static_cast<std::size_t>(kAlignment)});
}

}  // namespace millrace::kernels
