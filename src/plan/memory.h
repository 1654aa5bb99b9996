// The memory model of METHODS 3: what a rank holds, by kind, from the bytes of its stage and its live micro-batches.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/units.h"
#include "graph/graph.h"
#include "plan/stage_parts.h"

namespace millrace::plan {

/// Sizes that training adds to a graph.
struct TrainingBytes {
  std::int64_t real = 4;                     ///< of a real number that operators hand on
  std::int64_t optimizer_per_parameter = 0;  ///< state of one parameter element: SGD momentum 4, Adam 8 in fp32
  bool shard_optimizer = false;              ///< the owners of a parameter keep a part of its state each
};

/// Bytes of one stage on one replica, for a number of rows a micro-batch.
struct StageFootprint {
  Bytes weights{};  ///< parameters and buffers
  Bytes gradients{};
  Bytes optimizer{};
  Bytes per_slot{};   ///< kept for each live micro-batch: what backward reads, and the stage's border tensors
  Bytes workspace{};  ///< passing values of one forward or backward, and what one recomputed segment brings back
  Bytes messages{};   ///< send and receive buffers
};

/// Where those bytes come from: the device's own query, or the analytic count.
class StageBytes {
 public:
  virtual ~StageBytes() = default;
  /// `recompute`: those of the operators that run again before their backward. \pre both ascend.
  virtual StageFootprint footprint(std::span<const OpId> ops, std::int64_t rows,
                                   std::span<const OpId> recompute = {}) const = 0;
  /// Of device `shard` of a replica that shares those operators. `recompute`: of the whole graph.
  virtual StageFootprint part_footprint(const std::shared_ptr<const StageParts>& parts, std::size_t shard,
                                        std::span<const OpId> ops, std::int64_t rows,
                                        std::span<const OpId> recompute = {}) const = 0;
};

/// Counts tensors: no layouts, no padding.
class AnalyticBytes : public StageBytes {
 public:
  /// `graph` must outlive it. `receive_window`: receives posted ahead of the one waited for.
  AnalyticBytes(const Graph& graph, TrainingBytes sizes, int receive_window = 1)
      : graph_(&graph), sizes_(sizes), receive_window_(receive_window) {}
  StageFootprint footprint(std::span<const OpId> ops, std::int64_t rows,
                           std::span<const OpId> recompute = {}) const override;
  StageFootprint part_footprint(const std::shared_ptr<const StageParts>& parts, std::size_t shard,
                                std::span<const OpId> ops, std::int64_t rows,
                                std::span<const OpId> recompute = {}) const override;

 private:
  Bytes message_bytes(const StageGraph& stage, std::int64_t rows) const;

  const Graph* graph_;
  TrainingBytes sizes_;
  int receive_window_;
};

/// What one rank holds.
struct StageMemory {
  Bytes weights{};
  Bytes gradients{};
  Bytes optimizer{};
  Bytes activations{};  ///< live micro-batches × per_slot
  Bytes workspace{};
  Bytes buffers{};

  Bytes total() const { return weights + gradients + optimizer + activations + workspace + buffers; }
};

/// Memory of a rank whose schedule keeps `live` micro-batches of `footprint` alive at once.
StageMemory stage_memory(const StageFootprint& footprint, std::int64_t live);

}  // namespace millrace::plan
