// What the tensors and operators of a graph weigh, counted once for all orders that are cut.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "plan/memory.h"

namespace millrace::partitioners {

/// Bytes per sample where they grow with rows.
struct GraphBytes {
  /// `memory`: what backward keeps is asked of every operator too.
  GraphBytes(const Graph& graph, plan::TrainingBytes sizes, bool memory);

  plan::TrainingBytes sizes;
  std::vector<double> tensor;  ///< by tensor; the whole of parameters and buffers

  // Only with `memory`:
  std::vector<bool> saved;              ///< read by an operator's backward, or the loss: stays wherever it is made
  std::vector<bool> starts_segment;     ///< read by an operator of another layer: a recomputed segment starts from it
  std::vector<double> beside;           ///< by operator: what it keeps beside tensors
  std::vector<double> beside_once;      ///< the same for all rows of a micro-batch together
  std::vector<double> recomputed;       ///< by operator: what its layer brings back when it is recomputed
  std::vector<double> recomputed_once;  ///< the same for all rows together
};

}  // namespace millrace::partitioners
