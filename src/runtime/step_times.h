// Where the time of a rank goes while it trains.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace millrace::runtime {

/// Seconds of one rank, summed over the rounds run. A wait is exposed communication: the rank computed nothing. A wait
/// for a message counts from when the rank came to it, so it holds what the sender was late by (the pipeline's bubble).
struct StepTimes {
  Seconds busy{};                  ///< kernels and weight updates
  Seconds exposed_messages{};      ///< waits for activations and gradients of other stages
  Seconds exposed_reductions{};    ///< waits for gradient reductions
  Seconds exposed_tensor{};        ///< waits for the other ranks of a tensor-parallel replica, inside of computation
  Seconds exposed_sums{};          ///< waits for the sums of all ranks: norm, losses
  Seconds reductions_in_flight{};  ///< from each reduction's start to its end, hidden or not
  std::int64_t iterations = 0;

  Seconds exposed() const { return exposed_messages + exposed_reductions + exposed_tensor + exposed_sums; }
};

}  // namespace millrace::runtime
