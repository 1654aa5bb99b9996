// A device may hold several stages: the class of splits that interleaved schedules can run (METHODS 2).
#include "partitioners/interleaved.h"

#include <chrono>

#include <fmt/format.h>

#include "partitioners/common/max_load/interleaved.h"
#include "plan/objective.h"

namespace millrace::partitioners {

config::Options interleaved_options() {
  return {
      {"rounds", "annealings, each from hot to cold", config::Integer{0, 1'000'000}, "12"},
      {"time_limit", "stop after this long and return the best so far", config::Duration{}, "10 s"},
  };
}

plan::PlanSet interleaved(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate) {
  if (problem.objective == plan::Objective::max_load) {
    const std::chrono::duration<double> limit(options.duration("time_limit").value());
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(limit);
    return max_load_interleaved(problem, options.integer("rounds"), deadline, evaluate);
  }
  plan::PlanSet plans;
  plans.refuse(
      problem.pipelines.value_or(0), problem.stages.value_or(0), plan::Refusal::not_offered,
      fmt::format("objective {}: this partitioner is for max_load; for the others the schedules interleaved, zb-v and "
                  "chimera put several stages of any partitioner's plan on a device",
                  plan::name(problem.objective)));
  return plans;
}

}  // namespace millrace::partitioners
