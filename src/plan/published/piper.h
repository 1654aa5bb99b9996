// The formula of Piper (Tarnawski et al., NeurIPS 2021, section 3): time per sample and memory of a stage.
#pragma once

#include <cstdint>
#include <limits>

#include "graph/carried.h"
#include "plan/problem.h"

namespace millrace::plan {

/// A Piper file on the cluster of a problem.
struct PiperQuestion {
  const TensorParallelModel* model = nullptr;
  int devices = 1;
  double speed = 1;  ///< times of the file are divided by it
  double bytes_per_second = 0;
  double memory_bytes = std::numeric_limits<double>::infinity();
  std::int64_t batch = 1;  ///< micro-batches

  /// Most replicas of this and all later stages together.
  std::int64_t most_replicas() const { return batch < devices ? batch : devices; }
};

/// \throws InvalidInput  when the graph was not read from a Piper file.
PiperQuestion piper_question(const Problem& problem);

/// Variants of an operator at one degree; null where the file has none.
struct PiperVariants {
  const TensorParallelModel::Variant* plain = nullptr;      ///< "vanilla", else the first
  const TensorParallelModel::Variant* recompute = nullptr;  ///< the first other one
};

PiperVariants piper_variants(const TensorParallelModel& model, OpId op, int degree);

/// Bytes of `sync` for a neighbour.
double piper_sync(const std::vector<std::pair<OpId, double>>& sync, OpId neighbour);

/// Seconds of a sample on `replicas`, of compute and border seconds on one, and of parameters that are reduced.
inline double piper_stage(double seconds, double parameter_bytes, std::int64_t replicas,
                          const PiperQuestion& question) {
  const auto d = static_cast<double>(replicas);
  return seconds / d +
         4 * (d - 1) * parameter_bytes / (d * static_cast<double>(question.batch) * question.bytes_per_second);
}

/// Micro-batches alive on a replica of a stage when this and later stages have `replicas_from_here`.
inline std::int64_t piper_live(std::int64_t replicas_from_here, std::int64_t replicas) {
  return (replicas_from_here + replicas - 1) / replicas;
}

}  // namespace millrace::plan
