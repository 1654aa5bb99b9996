// Nodes by id, cycles in words, and cost operators into a graph.
#include "import/nodes.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/errors.h"
#include "graph/graph_builder.h"
#include "import/names.h"

namespace millrace::import {
namespace {

std::int64_t read_id(const JsonValue& value) {
  return value.integer(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
}

}  // namespace

NodeIndex::NodeIndex(const std::vector<JsonValue>& nodes) {
  for (const JsonValue& node : nodes) {
    const JsonValue field = node.at("id");
    const std::int64_t id = read_id(field);
    if (!positions_.emplace(id, ids_.size()).second) field.refuse(fmt::format("id {} is used twice", id));
    ids_.push_back(id);
  }
}

std::size_t NodeIndex::find(const JsonValue& place, std::int64_t id) const {
  const auto entry = positions_.find(id);
  if (entry == positions_.end()) place.refuse(fmt::format("found {}, allowed: the id of a node", id));
  return entry->second;
}

std::size_t NodeIndex::find(const JsonValue& id) const { return find(id, read_id(id)); }

NodeEdge read_edge(const JsonValue& edge, const NodeIndex& index) {
  const NodeEdge nodes{index.find(edge.at("sourceId")), index.find(edge.at("destId"))};
  if (nodes.from == nodes.to) edge.refuse("an edge from a node to itself, allowed: between two nodes");
  return nodes;
}

std::string cycle_text(const Successors& successors, const std::vector<std::string>& ids) {
  constexpr std::size_t kMostShown = 8;
  const std::vector<std::size_t> cycle = find_cycle(successors);
  if (cycle.empty()) return "";
  std::string text;
  for (std::size_t i = 0; i < std::min(cycle.size(), kMostShown); ++i) text += ids[cycle[i]] + " → ";
  if (cycle.size() > kMostShown) text += "… → ";
  return text + ids[cycle.front()];
}

void refuse_cycle(const JsonValue& edges, const Successors& successors, const NodeIndex& index) {
  std::vector<std::string> ids;
  for (const std::int64_t id : index.ids()) ids.push_back(std::to_string(id));
  const std::string cycle = cycle_text(successors, ids);
  if (!cycle.empty()) edges.refuse(fmt::format("nodes depend on each other: {}; allowed: no cycles", cycle));
}

std::int64_t whole_bytes(double bytes) { return static_cast<std::int64_t>(std::ceil(bytes)); }

Graph build_graph(const std::string& file, const std::vector<CostOperator>& operators, Carried carried) {
  try {
    GraphBuilder builder(graph_name(file));
    std::vector<TensorId> outputs;
    for (const CostOperator& op : operators) {
      std::vector<TensorId> inputs;
      for (const std::size_t producer : op.reads) inputs.push_back(outputs[producer]);
      outputs.push_back(builder.add_cost(op.name, std::move(inputs), op.figures));
    }
    builder.carry(std::move(carried));
    return builder.build();
  } catch (const InvalidInput& error) {
    throw InvalidInput(fmt::format("{}: {}", file, error.what()));
  }
}

}  // namespace millrace::import
