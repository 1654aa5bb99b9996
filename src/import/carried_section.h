// The key `carried` of a graph file: what another planner's file says beyond the graph (graph/carried.h), in words that
// name operators. Figures are in that file's own units, so plain numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/field.h"
#include "graph/graph.h"

namespace millrace::import {

/// Notes every fault. What is returned has a meaning only if there is none.
/// \param operators  their names, in order.
Carried read_carried(const config::Field& field, const std::vector<std::string>& operators);

/// The map of the key, which reads back as the same; nothing for a graph that carries nothing.
std::optional<config::Node> write_carried(const Graph& graph);

}  // namespace millrace::import
