// What a plan is chosen for (METHODS 6), by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "plan/report.h"

namespace millrace::plan {

enum class Objective : std::uint8_t {
  throughput,         ///< iteration time, s
  bottleneck,         ///< time per sample in steady state: micro-batches × the slowest stage / batch, s/sample
  memory_efficiency,  ///< throughput / memory of the fullest rank, samples/s/GiB; more is better
  communication,      ///< bytes put on the network per iteration; iteration time breaks ties
  // Those of published planners, exactly by their formulas (plan/published.h), for graphs read from their files.
  max_load,         ///< dnn-partitioning: load of the fullest device, the file's unit
  time_per_sample,  ///< Piper, s/sample
  pipedream,        ///< PipeDream optimizer: slowest stage, s per mini-batch
  dapple            ///< DAPPLE planner: latency of a global batch, s
};

const std::vector<std::string>& objective_names();
std::string_view name(Objective objective);
std::string_view unit(Objective objective);

/// \throws InvalidInput  with the nearest valid name.
Objective objective_by_name(std::string_view name);

/// The value of `objective` among the figures of a report.
double value_of(Objective objective, const PlanReport& report);

/// A plan and what is predicted for it.
struct Candidate {
  Plan plan;
  PlanReport report;
};

/// True if `a` is to be preferred: feasible before infeasible, better objective value, then smaller difference of the
/// slowest and the fastest stage, fewer bytes injected, cuts that come first in lexicographic order (INTERFACES 9).
bool better(Objective objective, const Candidate& a, const Candidate& b);

}  // namespace millrace::plan
