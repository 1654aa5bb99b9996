// Objective max_load over linear orders: a dynamic program that cuts each of them best (METHODS 6, orders A and B).
#pragma once

#include <chrono>

#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/problem.h"

namespace millrace::partitioners {

/// One candidate, under the name `dp`: the best cut of the best of the orders that it tries, one stage a device.
/// Answers without one are refusals. At `deadline` the orders tried so far count, and the report says "time".
/// \pre problem.objective is max_load.
/// \throws InvalidInput  when the graph was not read from a dnn-partitioning file.
plan::PlanSet max_load_linear(const plan::Problem& problem, std::chrono::steady_clock::time_point deadline,
                              plan::Evaluator& evaluate);

}  // namespace millrace::partitioners
