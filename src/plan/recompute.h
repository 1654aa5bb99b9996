// What stays of a stage's activations between forward and backward, with or without recomputation (METHODS 3).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "graph/stage_graph.h"

namespace millrace::plan {

/// A segment (graph/recompute_segments.h) is run again, from tensors that stay, right before its backward.
struct KeptActivations {
  /// Batched tensors, each once, ascending: the stage's border, what backward reads of operators that are not
  /// recomputed, and what a segment reads of others.
  std::vector<TensorId> tensors;
  Bytes beside_per_sample{};       ///< what operators that are not recomputed keep beside tensors
  Bytes beside_per_micro_batch{};  ///< the same for all rows together
  Bytes recomputed{};              ///< for `rows` rows: the most that one segment brings back
};

/// \pre `recompute` is part of the stage's operators and ascends.
KeptActivations kept_activations(const StageGraph& stage, std::span<const OpId> recompute, std::int64_t rows,
                                 std::int64_t real_bytes);

}  // namespace millrace::plan
