// Orders, cycles and components of a directed graph whose nodes are numbers.
#pragma once

#include <cstddef>
#include <vector>

namespace millrace::import {

using Successors = std::vector<std::vector<std::size_t>>;  ///< by node; an edge may be given more than once

/// A topological order that stays on one branch as long as it can: of the nodes that are ready, the one that became
/// ready last comes next; among those of one moment the first of the list. \pre no cycle.
std::vector<std::size_t> depth_first_order(const Successors& successors);

/// The nodes of one cycle in order; empty when there is none. An edge to itself is a cycle of one.
std::vector<std::size_t> find_cycle(const Successors& successors);

/// Number of the strongly connected component of each node. Components are numbered by their first nodes: 0, 1, …
std::vector<std::size_t> components(const Successors& successors);

}  // namespace millrace::import
