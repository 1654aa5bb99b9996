// Which operators that are computed again come back together (METHODS 3).
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace millrace {

/// The segment of each of `recompute`, from 0: operators with one layer tag are a segment, one without a tag is its
/// own. A segment runs again right before its backward; only one is back at a time.
std::vector<int> recompute_segments(const Graph& graph, std::span<const OpId> recompute);

}  // namespace millrace
