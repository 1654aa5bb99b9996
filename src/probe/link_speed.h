// Measures messages and sums between the ranks of a job.
#pragma once

#include <span>
#include <vector>

#include "base/units.h"
#include "cluster/cluster.h"
#include "comm/transport.h"

namespace millrace::probe {

/// Latency and bandwidth of one message from `a` to `b`: half of round trips, the smallest and one of 1 MiB, whose
/// first ones warm up. Called by both ranks, with nothing else in flight; each returns what its own clock says.
cluster::Link measure_link(comm::Transport& transport, int a, int b);

/// Median time of a sum over all ranks, for each of `sizes`. Called by all of them.
std::vector<Seconds> measure_all_reduce(comm::Transport& transport, std::span<const Bytes> sizes);

}  // namespace millrace::probe
