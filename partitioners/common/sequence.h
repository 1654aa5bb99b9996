// An order of operators to be cut, with what is counted along it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "partitioners/common/cut_points.h"
#include "partitioners/common/graph_bytes.h"
#include "partitioners/common/op_times.h"
#include "partitioners/common/segments.h"

namespace millrace::partitioners {

/// Segments between cut points of an order, and sums of times there. Not to be moved: the sums refer to the points.
struct Cutting {
  Cutting(const Graph& graph, const GraphBytes& bytes, const Order& order, Points points)
      : segments(graph, bytes, order, std::move(points)), sums(order, segments.points()) {}
  Cutting(const Cutting&) = delete;
  Cutting& operator=(const Cutting&) = delete;

  Segments segments;
  TimeSums sums;
};

class Sequence {
 public:
  /// `graph` and `bytes` must outlive it. `times`: of each operator. `items`: ends of runs that stay together; empty:
  /// every operator is one.
  Sequence(const Graph& graph, const GraphBytes& bytes, std::string name, Order order, std::span<const double> times,
           std::vector<std::size_t> items = {});

  const std::string& name() const { return name_; }
  const Order& order() const { return order_; }
  const CutPlaces& places() const { return places_; }

  /// At its cheapest `most` places; kept for the next time it is asked for as many.
  Cutting& cheapest(std::size_t most);
  std::unique_ptr<Cutting> at(Points points) const;

 private:
  const Graph* graph_;
  const GraphBytes* bytes_;
  std::string name_;
  Order order_;
  CutPlaces places_;
  std::vector<std::pair<std::size_t, std::unique_ptr<Cutting>>> kept_;  // by number of places
};

/// The orders that a problem's graph is cut in: by all tie-breaks, by clusters, or both; each different one once.
/// `stages`: of a pipeline, or as many as it may have. `times`: of each operator.
std::vector<std::unique_ptr<Sequence>> make_sequences(const Graph& graph, const GraphBytes& bytes,
                                                      std::span<const double> times, int stages, bool topological,
                                                      bool cluster);

}  // namespace millrace::partitioners
