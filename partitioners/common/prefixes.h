// Down-sets of an acyclic graph: the prefixes after which a pipeline can be cut, all of them or those of some orders.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace millrace::partitioners {

/// Readers of each item.
using ItemGraph = std::vector<std::vector<int>>;

/// A topological order that takes the ready item of the smallest key. \pre the graph has no cycle.
std::vector<int> order_by_key(const ItemGraph& readers, std::span<const double> keys);

/// A set of down-sets, each known by its position; the first is empty, the last is full, sizes ascend.
class Prefixes {
 public:
  /// Every down-set; none when there are more than `most` or the deadline passes.
  static std::optional<Prefixes> all(const ItemGraph& readers, std::size_t most,
                                     std::chrono::steady_clock::time_point deadline);

  /// The prefixes of one order that end at `cuts`: positions that ascend from 0 to the number of items.
  static Prefixes of_order(std::span<const int> order, std::span<const std::size_t> cuts);

  /// Of a graph with too many: the prefixes of several orders, and for each item the least down-set with it and the
  /// largest without it.
  static Prefixes some(const ItemGraph& readers, std::span<const std::vector<int>> orders);

  /// The down-sets that few items added or taken away make of each of `centres` (prefixes of `of`): the nearest about
  /// `most` of each.
  static Prefixes around(const ItemGraph& readers, const Prefixes& of, std::span<const std::size_t> centres,
                         std::size_t most);

  std::size_t size() const { return counts_.size(); }
  std::size_t items() const { return items_; }
  /// Whether every down-set of the graph is among them.
  bool complete() const { return complete_; }

  bool has(std::size_t prefix, int item) const {
    if (words_ == 0) return position_[static_cast<std::size_t>(item)] < counts_[prefix];
    return (bits_[prefix * words_ + static_cast<std::size_t>(item) / 64] >> (static_cast<std::size_t>(item) % 64)) & 1;
  }

  /// Whether `inner` lies in `outer`. \pre inner ≤ outer.
  bool within(std::size_t inner, std::size_t outer) const {
    for (std::size_t w = 0; w < words_; ++w) {
      if ((bits_[inner * words_ + w] & ~bits_[outer * words_ + w]) != 0) return false;
    }
    return true;
  }

 private:
  void append(std::span<const std::uint64_t> bits, std::size_t count);
  void sort_once();

  std::size_t items_ = 0;
  std::size_t words_ = 0;  // of a bit set; 0: the prefixes of one order, told by their lengths
  bool complete_ = false;
  std::vector<std::size_t> counts_;    // items of each prefix
  std::vector<std::size_t> position_;  // of each item in that one order
  std::vector<std::uint64_t> bits_;
};

}  // namespace millrace::partitioners
