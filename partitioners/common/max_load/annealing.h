// Simulated annealing over all assignments of items to devices.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "partitioners/common/max_load/model.h"

namespace millrace::partitioners::max_load {

struct Annealing {
  std::uint64_t seed = 1;
  std::int64_t rounds = 1;  ///< each from hot to cold; every other one from the best so far
  double enough = 0;        ///< a proven bound: a load that reaches it ends the search
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

struct Annealed {
  std::vector<std::uint32_t> device_of;  ///< by item, devices numbered kind by kind
  double load = 0;
  bool late = false;
};

/// The best assignment met, never worse than `start`, which respects memory limits as all that are met do. Moves one
/// item, or a group of connected ones, to another device; judged by the sum of the 12th powers of the loads, which is
/// smooth and close to the largest. The order of items plays no part. A function of its arguments, but for the
/// deadline.
Annealed annealed(const Model& model, const std::vector<std::uint32_t>& start, const Annealing& how);

}  // namespace millrace::partitioners::max_load
