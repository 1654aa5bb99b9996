// What the readers of foreign graphs share: nodes found by id, edges without cycles, and the graph of cost operators.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/carried.h"
#include "graph/figures.h"
#include "graph/graph.h"
#include "import/digraph.h"
#include "import/json_file.h"

namespace millrace::import {

/// The nodes of a JSON list by their key `id`, an integer.
class NodeIndex {
 public:
  /// \throws InvalidInput  an id that is missing, no integer, or used twice.
  explicit NodeIndex(const std::vector<JsonValue>& nodes);

  const std::vector<std::int64_t>& ids() const { return ids_; }
  /// Position of the node that `id` names. \throws InvalidInput  no such node.
  std::size_t find(const JsonValue& id) const;
  std::size_t find(const JsonValue& place, std::int64_t id) const;  ///< errors cite `place`

 private:
  std::vector<std::int64_t> ids_;
  std::unordered_map<std::int64_t, std::size_t> positions_;
};

/// Something that two nodes are joined by: keys sourceId and destId.
struct NodeEdge {
  std::size_t from;
  std::size_t to;
};

/// \throws InvalidInput  an unknown id; an edge from a node to itself.
NodeEdge read_edge(const JsonValue& edge, const NodeIndex& index);

/// The first few ids of a cycle, "3 → 5 → 3"; empty where there is none.
std::string cycle_text(const Successors& successors, const std::vector<std::string>& ids);

/// \throws InvalidInput  naming a cycle of the edges.
void refuse_cycle(const JsonValue& edges, const Successors& successors, const NodeIndex& index);

/// The smallest whole number of bytes that holds `bytes`. \pre below 2^63
std::int64_t whole_bytes(double bytes);

struct CostOperator {
  std::string name{};
  OpFigures figures{};
  std::vector<std::size_t> reads{};  ///< operators before this one, whose outputs it reads
};

/// The finished graph, named after the file. Errors of the graph's own rules (sizes beyond its limits) cite the file.
Graph build_graph(const std::string& file, const std::vector<CostOperator>& operators, Carried carried);

}  // namespace millrace::import
