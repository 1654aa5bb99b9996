// The best cut of one order of items into a chain, by dynamic program over positions and devices used.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>

#include "partitioners/common/max_load/model.h"

namespace millrace::partitioners::max_load {

/// The chain with the least load of those whose parts are runs of `order`, a topological order of the items; empty when
/// none is below `below`, or at the deadline. Exact for the order up to `most_places` items (fewer with very many
/// devices); from longer ones the cheapest places to cut are taken, evenly spread.
/// O(places · items of a stage · states of devices used); accelerators that differ in memory are told apart.
/// `most_places`: where to stop looking closer, for a quick answer.
Parts best_cut(const Model& model, std::span<const Item> order, double below,
               std::chrono::steady_clock::time_point deadline, std::size_t most_places = 4000);

}  // namespace millrace::partitioners::max_load
