// The ideals of a graph: sets of operators that hold, with each operator, all that it needs. Every plan of convex
// stages in order is a chain of them (METHODS 6, `exact`).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "partitioners/common/op_edges.h"
#include "partitioners/common/topological_order.h"

namespace millrace::partitioners::ideals {

/// Ideals by ascending size: 0 is empty, the last has all operators. One with one operator more covers another.
class Lattice {
 public:
  struct Cover {
    std::int32_t ideal = 0;
    OpId op = 0;  ///< the operator that it has more
  };

  /// All ideals of the graph; none when there are more than `most`, or more than fit in kMostBytes, or after the
  /// deadline. Of wide graphs that is known at once: k operators that need each other in no way have 2^k subsets.
  static std::optional<Lattice> of(const Graph& graph, const OpEdges& successors, std::size_t most,
                                   std::chrono::steady_clock::time_point deadline);
  /// Those of one order alone: its prefixes.
  static Lattice of(const Graph& graph, const Order& order);

  static constexpr std::size_t kMostBytes = std::size_t{256} << 20;

  int size() const { return static_cast<int>(start_.size()) - 1; }
  int whole() const { return size() - 1; }
  int operators_in(int ideal) const { return count_[static_cast<std::size_t>(ideal)]; }
  bool contains(int ideal, OpId op) const {
    const auto bit = static_cast<std::size_t>(op);
    return (bits_[static_cast<std::size_t>(ideal) * words_ + bit / 64] >> (bit % 64) & 1) != 0;
  }
  /// The ideals that cover it, by ascending operator.
  std::span<const Cover> covers(int ideal) const {
    const auto at = static_cast<std::size_t>(ideal);
    return {covers_.data() + start_[at], covers_.data() + start_[at + 1]};
  }
  /// Operators of `outer` that `inner` lacks, ascending.
  std::vector<OpId> between(int inner, int outer) const;

 private:
  class Growth;
  explicit Lattice(const Graph& graph) : words_((static_cast<std::size_t>(graph.size()) + 63) / 64) {}

  std::size_t words_;
  std::vector<std::uint64_t> bits_;  // [ideal][word]
  std::vector<std::int32_t> count_;
  std::vector<std::size_t> start_;  // of an ideal's covers; one more than ideals
  std::vector<Cover> covers_;
};

}  // namespace millrace::partitioners::ideals
