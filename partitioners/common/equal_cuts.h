// Cuts of an order into stages of about equal weight.
#pragma once

#include <span>
#include <vector>

#include "partitioners/common/topological_order.h"
#include "plan/assignment.h"

namespace millrace::partitioners {

/// Ends of the stages, as positions in an order; the last is its size.
using Cuts = std::vector<std::size_t>;

/// Cuts items of the given weights (not negative) into `stages` runs, each as near as possible to where an even split
/// would end it. Every run has at least one item, whatever the weights. \pre 1 ≤ stages ≤ items.
Cuts equal_cuts(std::span<const double> weights, int stages);

/// The same with runs of unequal weight, as `parts` say; equal_cuts() is the case of equal parts. \pre parts > 0.
Cuts proportional_cuts(std::span<const double> weights, std::span<const double> parts);

/// Run lengths that differ by at most one: ⌈n/p⌉ first, then ⌊n/p⌋ (INTERFACES 9).
Cuts even_cuts(std::size_t items, int stages);

/// The operators of each run, with the replicas of each stage.
std::vector<plan::StageCut> stage_cuts(const Order& order, const Cuts& cuts, std::span<const int> replicas);

}  // namespace millrace::partitioners
