// Sums over things that straddle a cut, as far as they end before another: what segments receive, send and share.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace::partitioners {

/// N sums. A thing counts for the pair of cuts (begin, end) when first ≤ begin ≤ last < end. For each begin the sums
/// are a step function of end: a row of few steps where few things straddle a cut.
template <std::size_t N>
class StepRows {
 public:
  using Sums = std::array<double, N>;
  struct Thing {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    Sums value{};
  };

  /// `cuts`: begins and lasts are below it. O(things + cuts + steps).
  StepRows(std::size_t cuts, std::vector<Thing> things);
  StepRows() : start_(1, 0) {}

  /// Sums of the things that count; zeros where no row was made.
  const Sums& at(std::size_t begin, std::size_t end) const {
    static constexpr Sums kNone{};
    if (begin + 1 >= start_.size()) return kNone;
    std::size_t low = start_[begin], high = start_[begin + 1];
    const std::size_t row = low;
    if (high - low > kLinear) {  // the last step before `end`
      while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (steps_[middle].last < end) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
    } else {
      while (low < high && steps_[low].last < end) ++low;
    }
    return low == row ? kNone : steps_[low - 1].value;
  }

 private:
  static constexpr std::size_t kLinear = 8;
  struct Step {
    std::uint32_t last = 0;
    Sums value{};  // of all things of the row that end here or before
  };
  std::vector<std::size_t> start_;
  std::vector<Step> steps_;
};

template <std::size_t N>
StepRows<N>::StepRows(std::size_t cuts, std::vector<Thing> things) : start_(1, 0) {
  std::sort(things.begin(), things.end(), [](const Thing& a, const Thing& b) { return a.first < b.first; });
  constexpr std::size_t kBits = 64;
  std::vector<Sums> sums(cuts, Sums{});  // of the things under way, by where they end
  std::vector<std::uint64_t> used(cuts / kBits + 1, 0);
  std::size_t next = 0, last = 0;
  for (std::size_t begin = 0; begin < cuts; ++begin) {
    for (; next < things.size() && things[next].first == begin; ++next) {
      const std::size_t end = things[next].last;
      for (std::size_t i = 0; i < N; ++i) sums[end][i] += things[next].value[i];
      used[end / kBits] |= std::uint64_t{1} << (end % kBits);
      last = std::max(last, end);
    }
    Sums total{};
    for (std::size_t word = begin / kBits; begin <= last && word <= last / kBits; ++word) {
      std::uint64_t bits = used[word];
      if (word == begin / kBits) bits &= ~std::uint64_t{0} << (begin % kBits);
      for (; bits != 0; bits &= bits - 1) {
        const std::size_t end = word * kBits + static_cast<std::size_t>(std::countr_zero(bits));
        for (std::size_t i = 0; i < N; ++i) total[i] += sums[end][i];
        steps_.push_back({static_cast<std::uint32_t>(end), total});
      }
    }
    start_.push_back(steps_.size());
  }
}

}  // namespace millrace::partitioners
