// Parts that a general graph partitioner gives, made into stages: acyclic, convex, none empty (REPORTS P09).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "partitioners/common/op_edges.h"
#include "partitioners/common/topological_order.h"

namespace millrace::partitioners {

/// Part of each operator; numbered so that no edge goes to a lower part.
using Parts = std::vector<int>;

/// What is wrong with parts as stages: an empty one, or parts that need each other; empty: nothing. Parts may be
/// numbered in any order.
std::string fault_of(const OpEdges& successors, std::span<const int> parts, int count);

/// Parts that can run one after the other, `count` of them, as near to the given ones as two ways get:
/// 1. parts are numbered by the mean place of their operators in `order`, and an operator goes no earlier than what it
///    needs;
/// 2. parts that need each other become one.
/// In both, parts that got lost are made up for by cutting the heaviest along `order`. Sound parts stay as they are,
/// renumbered; equal results are given once.
/// \pre count ≤ operators; `order` is topological; weights are not negative.
std::vector<Parts> repaired(const OpEdges& successors, std::span<const int> parts, int count, const Order& order,
                            std::span<const double> weights);

}  // namespace millrace::partitioners
