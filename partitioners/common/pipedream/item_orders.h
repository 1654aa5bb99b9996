// The orders of a graph's operators as orders of a layer network's items.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "partitioners/common/pipedream/layer_network.h"

namespace millrace::partitioners {

/// One for each topological order of the graph: an item comes where the first of its operators does, or as soon after
/// as what it reads allows.
std::vector<std::vector<int>> item_orders(const Graph& graph, const LayerNetwork& network);

}  // namespace millrace::partitioners
