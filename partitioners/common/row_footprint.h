// The bytes of a stage for any number of rows and live micro-batches, from two questions.
#pragma once

#include <cstdint>
#include <span>

#include "plan/memory.h"

namespace millrace::partitioners {

/// Every figure of plan::AnalyticBytes is a number and a multiple of the rows of a micro-batch.
struct RowFootprint {
  std::int64_t fixed = 0;      ///< bytes, whatever the rows
  std::int64_t kept_once = 0;  ///< for each live micro-batch
  std::int64_t by_row = 0;     ///< for each row
  std::int64_t kept = 0;       ///< for each row of each live micro-batch

  std::int64_t bytes(std::int64_t rows, std::int64_t live) const {
    return fixed + live * kept_once + rows * (by_row + live * kept);
  }
};

/// `recompute`: those of the operators that run again before their backward. \pre both ascend.
inline RowFootprint row_footprint(const plan::AnalyticBytes& bytes, std::span<const OpId> ops,
                                  std::span<const OpId> recompute = {}) {
  const plan::StageFootprint none = bytes.footprint(ops, 0, recompute), one = bytes.footprint(ops, 1, recompute);
  const auto apart = [](const plan::StageFootprint& f) {
    return (f.weights + f.gradients + f.optimizer + f.workspace + f.messages).value();
  };
  return {apart(none), none.per_slot.value(), apart(one) - apart(none), (one.per_slot - none.per_slot).value()};
}

}  // namespace millrace::partitioners
