// Times of reductions by the closed forms of METHODS 5.
#pragma once

#include <span>

#include "base/units.h"
#include "cluster/cluster.h"

namespace millrace::cost {

/// 2(n−1)/n · bytes · β + 2(n−1) α.
Seconds ring_all_reduce(Bytes amount, int devices, cluster::Link link);

/// 2 · bytes · β + 2⌈log₂ n⌉ α.
Seconds tree_all_reduce(Bytes amount, int devices, cluster::Link link);

/// `nodes` nodes of `per_node` devices with one network port each:
/// 2(g−1)/g · bytes · β₁ + 2(g−1) α₁ + 2(k−1)/k · bytes · β_port + 2(k−1) α₂.
Seconds hierarchical_all_reduce(Bytes amount, int nodes, int per_node, cluster::Link inner, cluster::Link port);

/// The cheapest of these over the slowest link among `devices`, as a library would choose; the hierarchical form where
/// the devices lie evenly on several nodes. Zero for fewer than two devices.
Seconds cheapest_all_reduce(Bytes amount, std::span<const int> devices, const cluster::Cluster& cluster);

}  // namespace millrace::cost
