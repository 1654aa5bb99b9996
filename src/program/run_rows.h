// What an interpreter of programs tells: rows of the results tables, predicted or measured alike.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace millrace {

/// One iteration, as every rank knows it; times are those of the rank that asks.
struct IterationRow {
  std::int64_t iteration = 0;  ///< from 1
  std::int64_t epoch = 0;      ///< from 1
  std::int64_t samples = 0;    ///< so far, padding not counted
  double loss = 0;             ///< mean over the valid samples, before the update; NaN: not computed
  double gradient_norm = 0;    ///< L2 over all parameters, before clipping; NaN: not computed
  double learning_rate = 0;
  Seconds time{};
  Seconds
      exposed_communication{};  ///< of this rank: the part of `time` in which it waited for messages, reductions, sums
  bool skipped = false;         ///< the gradient was not finite; no rank updated (or left out what was not finite)
};

struct EvaluationRow {
  std::int64_t iteration = 0;  ///< updates before it
  double loss = 0;             ///< mean over the whole test split
  double accuracy = 0;         ///< fraction of the whole test split
};

/// What one rank used.
struct RankReport {
  std::int64_t weights_bytes = 0;
  std::int64_t gradients_bytes = 0;
  std::int64_t optimizer_bytes = 0;
  std::int64_t activations_bytes = 0;
  std::int64_t workspace_bytes = 0;
  std::int64_t buffers_bytes = 0;
  std::int64_t peak_rss_bytes = 0;
  Seconds busy{};
  Seconds idle{};
  Seconds exposed_messages{};      ///< waits for activations and gradients of other stages, their lateness included
  Seconds exposed_reductions{};    ///< waits for gradient reductions
  Seconds exposed_tensor{};        ///< waits for the other ranks of a tensor-parallel replica
  Seconds exposed_sums{};          ///< waits for norms and losses of all ranks
  Seconds reductions_in_flight{};  ///< of gradient reductions, hidden or not
  std::int64_t sent_bytes = 0;
  std::int64_t received_bytes = 0;

  std::int64_t peak_bytes() const {
    return weights_bytes + gradients_bytes + optimizer_bytes + activations_bytes + workspace_bytes + buffers_bytes;
  }
};

}  // namespace millrace
