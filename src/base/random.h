// Counter-based random numbers (Philox 4x32-10): each is a function of (seed, name, step, sample, index), never
// of the rank, the order of calls or the number of processes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace millrace {

/// One stream of random numbers, named by what it is for ("conv1.weight", "dropout0", "shuffle").
class Random {
 public:
  Random(std::uint64_t seed, std::string_view name, std::uint64_t step = 0, std::uint64_t sample = 0);
  /// The same with the name's hash64 taken once, for inner loops.
  Random(std::uint64_t seed, std::uint64_t name_hash, std::uint64_t step, std::uint64_t sample);

  std::uint64_t bits(std::uint64_t index) const;                           ///< 64 random bits
  double uniform(std::uint64_t index) const;                               ///< in [0, 1)
  double normal(std::uint64_t index) const;                                ///< mean 0, variance 1
  std::uint64_t below(std::uint64_t bound, std::uint64_t index) const;     ///< in [0, bound), bound > 0

 private:
  std::array<std::uint32_t, 4> block(std::uint64_t index) const;

  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 2> counter_high_;
};

}  // namespace millrace
