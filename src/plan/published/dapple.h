// The formula of the DAPPLE planner (Fan et al., PPoPP 2021, section 4.2): latency of a global batch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "plan/problem.h"

namespace millrace::plan {

/// Bytes per second; part of the objective, whatever the cluster says.
inline constexpr double kDappleBetweenServers = 1e9;
inline constexpr double kDappleWithinServer = 25e9;
inline constexpr double kDappleSpanning = 3e9;

/// Where the devices of a stage in one pipeline are: the server that holds all of them, or kSpansServers.
inline constexpr int kSpansServers = -1;

inline double dapple_bandwidth(int sender, int receiver) {
  if (receiver == kSpansServers) return kDappleSpanning;
  return sender == receiver ? kDappleWithinServer : kDappleBetweenServers;
}

/// Seconds to sum a stage's gradients over all its devices in all pipelines.
inline double dapple_all_reduce(double parameter_bytes, std::int64_t devices, bool spans_servers) {
  if (devices < 2) return 0;
  const auto g = static_cast<double>(devices);
  const double moved = 2 * (g - 1) / g * parameter_bytes;
  return moved / (spans_servers ? kDappleSpanning : kDappleWithinServer * static_cast<double>(devices / 2));
}

/// Reduction of stage `stage` that the backward passes of the stages before it do not hide.
struct DappleReduction {
  double seconds = 0;
  int stage = 0;
  double exposed(double block) const { return std::max(0.0, seconds - stage * block); }
};

/// Seconds of a batch: steady state, filling the pipeline with one micro-batch, and the longest exposed reduction.
inline double dapple_latency(double block, std::int64_t micro_batches, double fill, double transfers,
                             const std::vector<DappleReduction>& reductions) {
  double tail = 0;
  for (const DappleReduction& reduction : reductions) tail = std::max(tail, reduction.exposed(block));
  return block * static_cast<double>(micro_batches - 1) + fill + transfers + tail;
}

/// How often a profile's mini-batch is in the batch of the problem.
double dapple_scale(const Problem& problem, double profile_batch);

/// Micro-batches of each of `pipelines`; 0 where the batch does not divide.
std::int64_t dapple_micro_batches(const Problem& problem, int pipelines);

}  // namespace millrace::plan
