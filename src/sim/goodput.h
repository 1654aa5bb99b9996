// What failures and checkpoints leave of the time that a job holds its devices.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace millrace::sim {

/// Failures of single devices come independently, with exponential times between them; one stops the whole job.
struct Failures {
  Seconds mean_time_between{};  ///< failures of one device
  std::int64_t devices = 1;
  Seconds restart{};           ///< from a failure to the first new iteration: detection, replacement, loading
  Seconds checkpoint{};        ///< for which training stands still for one checkpoint
  Seconds checkpoint_every{};  ///< of training between two checkpoints; 0: the best interval
};

struct Goodput {
  double fraction = 1;          ///< of the time that goes into iterations that count
  Seconds checkpoint_every{};   ///< as used
  double failures_per_day = 0;  ///< of the whole job
};

/// A segment of t seconds of training and its checkpoint of c seconds take (1/λ + r)(exp(λ(t + c)) − 1) on average,
/// failures during it and restarts of r seconds included (Daly 2006, restarts themselves taken not to fail); the
/// fraction is t over that. \pre  mean_time_between > 0, devices > 0.
Goodput goodput(const Failures& failures);

}  // namespace millrace::sim
