// What a run of operators of an order holds, receives and sends, for any pair of cut points, from sums along the order
// (METHODS 6, dynamic program).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/graph.h"
#include "partitioners/common/graph_bytes.h"
#include "partitioners/common/range_maximum.h"
#include "partitioners/common/step_rows.h"
#include "partitioners/common/topological_order.h"

namespace millrace::partitioners {

/// Figures of one segment, as plan::AnalyticBytes counts them; per sample where they grow with rows.
struct Segment {
  double parameter_elements = 0;  ///< tied tensors once
  double gradient_bytes = 0;      ///< parameters and buffers
  double received_bytes = 0;      ///< activations from before the segment
  double received_tensors = 0;
  // Only of segments made with `memory`:
  double sent_bytes = 0;        ///< activations that are read behind the segment
  double kept_bytes = 0;        ///< read by backward, or at the border
  double kept_once = 0;         ///< for all rows of a micro-batch together
  double border_bytes = 0;      ///< kept when all is recomputed
  double recomputed_bytes = 0;  ///< at most: what one recomputed layer brings back
  double recomputed_once = 0;
  double passing_bytes = 0;  ///< at most: gradients alive at once; exact where `exact` is
};

class Segments {
 public:
  /// `points`: cut points, ascending from 0 to the order's size. `graph`, `bytes` and `order` must outlive the
  /// constructor only. With bytes of memory, and few operators, what passes is counted segment by segment.
  Segments(const Graph& graph, const GraphBytes& bytes, const Order& order, std::vector<std::size_t> points);

  /// Number of items between neighbouring cut points.
  std::size_t items() const { return points_.size() - 1; }
  const std::vector<std::size_t>& points() const { return points_; }

  /// Items [begin, end), begin < end: bytes per sample and number of tensors that they read from before.
  const std::array<double, 2>& received(std::size_t begin, std::size_t end) const { return received_.at(begin, end); }
  double gradient_bytes(std::size_t begin, std::size_t end) const {
    return gradients_[end] - gradients_[begin] + shared_.at(begin, end)[1];
  }
  /// All figures. \pre made with memory, for those that need it.
  Segment at(std::size_t begin, std::size_t end) const;

 private:
  using Tied = StepRows<3>::Thing;
  void count_owned(const Graph& graph, const GraphBytes& bytes, const std::vector<std::uint32_t>& item);
  void count_activations(const Graph& graph, const GraphBytes& bytes, const std::vector<std::uint32_t>& item);
  void count_memory(const Graph& graph, const GraphBytes& bytes, const Order& order,
                    const std::vector<std::uint32_t>& item);
  void count_passing(const Graph& graph, const GraphBytes& bytes, const Order& order);

  std::vector<std::size_t> points_;
  bool memory_;
  // Sums of the items before each cut point; of what several items share, the first use counts.
  std::vector<double> elements_, gradients_, sources_, kept_, kept_once_, borders_;
  StepRows<2> received_;  // bytes, tensors
  StepRows<3> shared_;    // tied: elements, bytes; bytes of graph inputs
  StepRows<3> sent_;      // mirrored; all, those that no backward reads, those that start no segment
  RangeMaximum passing_, recomputed_, recomputed_once_;
  std::vector<double> exact_passing_, exact_recomputed_;  // [begin · cut points + end]; empty: too many
};

}  // namespace millrace::partitioners
