// What a run of operators of an order holds and receives, for every pair of cut points (METHODS 6, dynamic program).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/graph.h"
#include "partitioners/common/topological_order.h"
#include "plan/memory.h"

namespace millrace::partitioners {

/// Figures of one segment; per sample where they grow with rows.
struct Segment {
  double parameter_elements = 0;  ///< tied tensors once
  double buffer_bytes = 0;
  double kept_bytes = 0;         ///< per sample: read by backward, or at the border
  double kept_bytes_once = 0;    ///< per micro-batch
  double received_bytes = 0;     ///< per sample: activations from before the segment
  double sent_bytes = 0;         ///< per sample: activations that are read behind the segment
  double widest_bytes = 0;       ///< per sample: inputs and outputs of the widest operator
  std::int32_t received_tensors = 0;
};

/// The cheapest places to cut an order: positions, ascending, from 0 to the order's size. With at most `most` + 1
/// places; where there are more, the order is divided into equal times and each part gives the place where the fewest
/// bytes cross.
std::vector<std::size_t> cut_points(const Graph& graph, const Order& order, const std::vector<double>& times,
                                    std::size_t most);

/// Segments between all pairs of cut points: O(points × operators).
class SegmentTable {
 public:
  SegmentTable(const Graph& graph, const Order& order, std::vector<std::size_t> points, plan::TrainingBytes sizes);

  /// Number of items between neighbouring cut points.
  std::size_t items() const { return points_.size() - 1; }
  const std::vector<std::size_t>& points() const { return points_; }
  /// Items [begin, end), begin < end.
  const Segment& at(std::size_t begin, std::size_t end) const { return table_[begin * points_.size() + end]; }

 private:
  std::vector<std::size_t> points_;
  std::vector<Segment> table_;
};

}  // namespace millrace::partitioners
