// The largest of any run of numbers in O(1), after O(n log n).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

namespace millrace::partitioners {

class RangeMaximum {
 public:
  RangeMaximum() = default;
  explicit RangeMaximum(std::vector<double> numbers) {
    levels_.push_back(std::move(numbers));
    for (std::size_t width = 1; 2 * width <= levels_[0].size(); width *= 2) {
      const std::vector<double>& half = levels_.back();
      std::vector<double> next(half.size() - width);
      for (std::size_t i = 0; i < next.size(); ++i) next[i] = std::max(half[i], half[i + width]);
      levels_.push_back(std::move(next));
    }
  }

  /// Of [begin, end). \pre begin < end ≤ number of numbers.
  double at(std::size_t begin, std::size_t end) const {
    const auto level = static_cast<std::size_t>(std::bit_width(end - begin) - 1);
    const std::vector<double>& of = levels_[level];
    return std::max(of[begin], of[end - (std::size_t{1} << level)]);
  }

 private:
  std::vector<std::vector<double>> levels_;  // of runs of 2^level
};

}  // namespace millrace::partitioners
