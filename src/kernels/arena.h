// Places buffers with known lifetimes in one block of memory, and allocates such blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace millrace::kernels {

/// Offsets and sizes are multiples of this: a cache line. Pages would cost memory and let buffers collide in the cache.
inline constexpr std::int64_t kAlignment = 64;

/// `bytes` rounded up to the alignment.
constexpr std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// A buffer that is alive from time `first` to time `last`, both included.
struct Lifetime {
  std::int64_t bytes = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t offset = 0;  ///< assigned
};

/// Assigns offsets so that buffers alive at the same time do not overlap: largest first, each in the smallest gap that
/// holds it (greedy by size with best fit: Pisarchyk and Lee, arXiv:2001.03288). Returns the bytes needed.
std::int64_t assign_offsets(std::span<Lifetime> buffers);

/// One aligned block, zeroed: padding rows start as numbers. A large one has pages of its own, which leave the process
/// with it.
class Block {
 public:
  static constexpr std::int64_t kOwnPages = std::int64_t{1} << 20;  ///< bytes from which on a block is large

  explicit Block(std::int64_t bytes);
  std::byte* at(std::int64_t offset) const { return memory_.get() + offset; }

 private:
  struct Free {
    std::int64_t bytes = 0;
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte[], Free> memory_;
};

}  // namespace millrace::kernels
