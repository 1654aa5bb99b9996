// Measures every operator of a network on this rank: forward, both halves of backward, and the optimizer step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/units.h"
#include "cost/profile.h"
#include "graph/graph.h"
#include "kernels/device.h"
#include "probe/network_sample.h"

namespace millrace::probe {

/// The optimizer step over the tensor at a position of the storage order.
using Step = std::function<void(std::size_t position)>;
/// Makes it for the parameters that are measured; optimizers belong to a room above this one.
using MakeStep = std::function<Step(kernels::StageParameters& parameters)>;

struct ProfileOptions {
  std::vector<std::int64_t> rows;  ///< of the micro-batches to measure, ascending
  kernels::Precision precision = kernels::Precision::fp32;
  std::uint64_t seed = 1;
  Stages stages{};             ///< that the network is cut into, as a plan does; empty: it is one
  Seconds time_of_size{0.25};  ///< repetitions of one size go on for so long,
  int least_repetitions = 5;   ///< and are at least so many: an odd number has a middle
  int most_repetitions = 101;
  /// Called before each measurement; a barrier makes the ranks of a job measure side by side, as they train. Empty:
  /// not.
  std::function<void()> together{};
};

/// The network runs as a whole, stage after stage on one rank, and its kernels are told apart by a KernelObserver:
/// caches, layouts and, where it is cut, borders are those of training. The first run of each size warms up and does
/// not count. Of `cpu` and `threads` nothing is filled in. \pre the graph trains.
cost::Profile profile_operators(const Graph& graph, kernels::Device& device, const ProfileOptions& options,
                                const MakeStep& make_step);

}  // namespace millrace::probe
