// Lists that are sets.
#pragma once

#include <algorithm>
#include <vector>

namespace millrace {

/// Sorts the list and leaves each value once.
template <typename T>
void sort_distinct(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace millrace
