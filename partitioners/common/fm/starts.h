// First divisions of a graph: orders from keys, cut to equal times or at random.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "partitioners/common/fm/labels.h"
#include "partitioners/common/op_edges.h"
#include "partitioners/common/topological_order.h"

namespace millrace::partitioners::fm {

/// Random numbers in the order of asking; a stream is a function of seed, name and its two numbers.
class Draws {
 public:
  Draws(std::uint64_t seed, std::string_view name, std::uint64_t step = 0, std::uint64_t sample = 0)
      : random_(seed, name, step, sample) {}

  /// In [0, bound); bound > 0.
  std::int32_t below(std::size_t bound) { return static_cast<std::int32_t>(random_.below(bound, next_++)); }
  bool coin() { return below(2) == 1; }
  double uniform() { return random_.uniform(next_++); }

 private:
  Random random_;
  std::uint64_t next_ = 0;
};

/// One number an operator: of those that are ready the one with the smallest comes next, ties to the lower operator.
using Keys = std::vector<std::int32_t>;

/// Kahn's algorithm by keys. \pre edges go from lower to higher operators.
Order decode(const OpEdges& successors, std::span<const std::int32_t> keys);

/// Position of each operator: the keys that decode to `order`.
Keys positions(const Order& order);

/// Keys drawn evenly.
Keys random_keys(std::size_t size, Draws& draws);

/// Positions in `order` moved at random by up to `reach` of its length: keeps more of the order the smaller it is.
Keys shaken_keys(const Order& order, double reach, Draws& draws);

/// Ends of the stages, as positions in an order; the last is its size.
using Ends = std::vector<std::int32_t>;

/// Ends at which each stage has its part of the time, by its capacity; no stage is empty.
Ends equal_time_ends(const Machine& machine, const Order& order);

/// `stages` − 1 distinct places.
Ends random_ends(std::size_t size, int stages, Draws& draws);

/// Ends moved at random by up to half of a stage of average size.
Ends shaken_ends(const Ends& ends, Draws& draws);

/// Ends made ascending with an operator in each stage at least. \pre as many operators as stages.
void repair(Ends& ends, std::size_t size);

StageOf divided(const Order& order, const Ends& ends);

/// Keys, and cuts of the order that they decode to.
struct Start {
  Keys keys;
  Ends ends;
};

/// One of `orders` shaken more or less and cut to about equal times, or all at random.
Start random_start(const Machine& machine, const OpEdges& successors, std::span<const Order> orders, Draws& draws);

}  // namespace millrace::partitioners::fm
