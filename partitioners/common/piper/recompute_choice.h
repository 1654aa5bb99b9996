// Which operators of a stage take their slower variant so that it fits: a knapsack, by bounds and then exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "partitioners/common/piper/stage_costs.h"

namespace millrace::partitioners {

class PiperRecompute {
 public:
  PiperRecompute(const PiperStageCosts& costs, const Prefixes& prefixes, double memory_bytes);

  /// Least extra seconds on one replica with which the segment fits with `live` micro-batches, if that is at most
  /// `allowed`; else some number above `allowed`, infinite where nothing fits.
  double extra_seconds(std::size_t degree, std::size_t from, std::size_t to, std::int64_t live,
                       const PiperSegment& segment, double allowed);

  /// Operators that take the other variant in the solution behind extra_seconds().
  std::vector<OpId> others(std::size_t degree, std::size_t from, std::size_t to, std::int64_t live,
                           const PiperSegment& segment);

  /// False once a knapsack was too large for its exact search and its best known solution was taken.
  bool exact() const { return exact_; }

 private:
  struct Item {
    OpId op = 0;
    double cost = 0;
    double saving = 0;
  };
  /// Items that save, cheapest per byte first; and what all of a prefix can save.
  struct Order {
    std::vector<Item> items;
    std::vector<double> savings;  // by prefix
  };
  struct Solution {
    double least = 0;  // proven
    double found = 0;
    bool exact = false;
  };
  struct Key {
    std::size_t degree = 0, from = 0, to = 0;
    std::int64_t live = 0;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  const Order& order(std::size_t degree, std::int64_t live);
  std::vector<Item> items_of(const Order& order, std::size_t from, std::size_t to) const;
  static Solution bounds(const std::vector<Item>& items, double need, std::vector<OpId>* chosen);
  double solve(const std::vector<Item>& items, double need, double found, std::vector<OpId>* chosen);
  double need(const PiperSegment& segment, std::int64_t live) const {
    return segment.memory_a * static_cast<double>(live) + segment.memory_b - memory_bytes_;
  }

  const PiperStageCosts& costs_;
  const Prefixes& prefixes_;
  double memory_bytes_;
  std::map<std::pair<std::size_t, std::int64_t>, Order> orders_;  // by degree and live micro-batches
  std::unordered_map<Key, Solution, Hash> known_;
  bool exact_ = true;
};

}  // namespace millrace::partitioners
