// From stages to a plan: the default assignment of devices, replica fastest, then stage, then pipeline (INTERFACES 9).
#pragma once

#include <span>
#include <vector>

#include "plan/problem.h"

namespace millrace::plan {

/// Operators and number of replicas of one stage.
struct StageCut {
  std::vector<OpId> ops;  ///< any order
  int replicas = 1;
};

/// How replicas share the rows of a micro-batch.
enum class Shares { equal, by_speed };

/// `pipelines` equal pipelines of these stages on consecutive devices: consecutive stages fill a node before the next.
/// Operators are recomputed where the problem says so of all stages (recomputes_all()).
/// \pre pipelines × Σ replicas ≤ devices of the cluster.
Plan assign(const Problem& problem, int pipelines, std::span<const StageCut> stages, Shares shares = Shares::equal);

/// Replicas of `stages` stages on `devices` devices, as even as possible: the first ones get one more.
std::vector<int> even_replicas(int devices, int stages);

}  // namespace millrace::plan
