// Measures messages and sums between the ranks of a job.
#pragma once

#include <span>
#include <vector>

#include "base/units.h"
#include "cluster/cluster.h"
#include "comm/transport.h"

namespace millrace::probe {

/// From the begin of a send on one rank until the other has the message in a tensor of its own, as training sends it:
/// half of the median round trip between `a` and `b`, after some that warm up. Called by both ranks, with nothing else
/// in flight; each returns what its own clock says.
Seconds measure_message(comm::Transport& transport, int a, int b, Bytes size);

/// Latency and bandwidth of such messages: the smallest and one of 1 MiB.
cluster::Link measure_link(comm::Transport& transport, int a, int b);

/// Median time of a sum over all ranks, for each of `sizes`. Called by all of them.
std::vector<Seconds> measure_all_reduce(comm::Transport& transport, std::span<const Bytes> sizes);

}  // namespace millrace::probe
