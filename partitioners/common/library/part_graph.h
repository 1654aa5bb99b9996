// A graph of operators as libraries for graph partitioning take it: undirected, with 32-bit weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace millrace::partitioners::library {

/// Compressed rows; every edge stands in the rows of both its ends.
struct PartGraph {
  std::vector<std::int32_t> start;  ///< one more than vertices
  std::vector<std::int32_t> ends;
  std::vector<std::int32_t> edge_weights;  ///< of bytes, by edge
  std::vector<std::int32_t> weights;       ///< of seconds, by vertex

  std::int32_t vertices() const { return static_cast<std::int32_t>(weights.size()); }
};

/// Sums of weights stay below 2^29, as libraries add them up in 32 bits; what is not zero weighs 1 at least, and a
/// graph of zeros weighs 1 a vertex. Edges between the same operators are one.
/// \param seconds  of each operator
PartGraph part_graph(const Graph& graph, std::span<const double> seconds, std::int64_t real_bytes);

}  // namespace millrace::partitioners::library
