// Where an order may be cut: everywhere while that is few places, else the cheapest of them (TECHNIQUES: one dear cut
// between many cheap ones helps nobody).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "partitioners/common/graph_bytes.h"
#include "partitioners/common/topological_order.h"

namespace millrace::partitioners {

/// Positions in an order, ascending, from 0 to its size.
using Points = std::vector<std::size_t>;

class CutPlaces {
 public:
  /// `times`: of each operator. `allowed`: positions between 0 and the size; empty: all. All are copied or counted.
  CutPlaces(const Graph& graph, const GraphBytes& bytes, const Order& order, std::span<const double> times,
            std::span<const std::size_t> allowed = {});

  /// All allowed places where there are at most `most` + 1; else the order is divided into `most` parts of equal time
  /// and each gives the place where the fewest bytes cross.
  Points cheapest(std::size_t most) const;

  /// Points near `centres` (of `coarse`) are divided anew, so that there are about `most` in all; far from them the
  /// coarse ones stay.
  Points near(const Points& coarse, std::span<const std::size_t> centres, std::size_t most) const;

  std::size_t count() const { return allowed_.size() + 1; }
  /// Tensors that cross a place, on average.
  double width() const { return width_; }

 private:
  void thin(std::size_t begin, std::size_t end, std::size_t parts, Points& points) const;

  std::size_t size_;
  std::vector<std::size_t> allowed_;  // places, ascending, without 0 and the size
  std::vector<double> passed_;        // at each place: time of the operators before it, and a little for each
  std::vector<double> crossing_;      // bytes
  double width_ = 0;
};

}  // namespace millrace::partitioners
