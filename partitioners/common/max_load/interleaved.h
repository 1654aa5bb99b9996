// Objective max_load where a device may hold several stages, as interleaved schedules do: a search and a bound.
#pragma once

#include <chrono>
#include <cstdint>

#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/problem.h"

namespace millrace::partitioners {

/// One candidate, under the name `interleaved`, whose stages may repeat devices; `problem.seed` decides its random
/// choices and `rounds` how long it looks, so that the same question has the same answer; `deadline` ends it early, and
/// the report then says "time". The bound holds for every assignment of operators to devices.
/// \pre problem.objective is max_load.
/// \throws InvalidInput  when the graph was not read from a dnn-partitioning file.
plan::PlanSet max_load_interleaved(const plan::Problem& problem, std::int64_t rounds,
                                   std::chrono::steady_clock::time_point deadline, plan::Evaluator& evaluate);

}  // namespace millrace::partitioners
