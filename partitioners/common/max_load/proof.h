// The optimum over chains, or how near a known chain is to it.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

#include "partitioners/common/max_load/model.h"

namespace millrace::partitioners::max_load {

struct Proof {
  Parts chain;       ///< the best that is known
  double load = 0;   ///< of it
  double bound = 0;  ///< no chain has less
  bool late = false;

  /// Up to rounding of sums.
  bool complete() const;
};

/// What a proof may cost: time, or (to be the same on every machine) steps of each search.
struct Effort {
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::uint64_t steps = std::numeric_limits<std::uint64_t>::max();
};

/// Starts from `known` (which may be empty, load infinite) and a bound that holds; asks ChainSearch for less than the
/// best until there is none. What it cannot answer in its share of the effort, it asks for smaller loads: each "none"
/// raises the bound.
Proof prove(const Model& model, const Parts& known, double bound, const Effort& effort);

}  // namespace millrace::partitioners::max_load
