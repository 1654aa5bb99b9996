// Local search on stage labels (METHODS 6): passes in the manner of Fiduccia and Mattheyses with acyclic moves, and
// swaps for balance.
#pragma once

#include <chrono>

#include "partitioners/common/fm/labels.h"

namespace millrace::partitioners::fm {

/// When to stop.
using Deadline = std::chrono::steady_clock::time_point;

/// How long a pass goes on downhill, and how many passes there are.
struct Effort {
  int passes = 16;
  int patience = 32;  ///< moves since the best prefix, at least
};

/// Moves nodes until no pass and no swap makes the value smaller; it never gets larger. Past the deadline the best so
/// far is kept.
void improve(Labels& labels, const Effort& effort, Deadline deadline);

}  // namespace millrace::partitioners::fm
