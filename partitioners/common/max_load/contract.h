// Merging items of a model, and order edges without those that others imply.
#pragma once

#include <vector>

#include "partitioners/common/max_load/model.h"

namespace millrace::partitioners::max_load {

/// Items of one group become one. Items on a cycle between groups join, too: a convex set that holds its ends holds
/// them all. `group_of` gives any number for each item. Transfers with the same ends are added up. The result is
/// numbered in topological order, without implied edges as far as `without_implied_edges` goes.
Model contracted(const Model& model, const std::vector<std::size_t>& group_of);

/// Leaves out `dropped` items, which have no transfers; each of their predecessors comes before each successor.
Model without(const Model& model, const std::vector<bool>& dropped);

/// Takes edges out of `before` and `after` that longer paths imply; models of many items are left as they are.
void without_implied_edges(Model& model);

}  // namespace millrace::partitioners::max_load
