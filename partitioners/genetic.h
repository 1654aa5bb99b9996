// Genetic search with local search on stage labels, on islands that the ranks of a job share (METHODS 6, `genetic`).
#pragma once

#include "config/option.h"
#include "config/values.h"
#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/problem.h"

namespace millrace::partitioners {

config::Options genetic_options();

/// One plan for each allowed number of pipelines and stages, replicas as even as possible; cuts any acyclic division,
/// not only runs of one order. The same seed gives the same plans on any number of ranks (Problem::exchange), unless
/// the time limit ends the search: then `stopped_by` says "time". For the objectives of published planners the search
/// balances stages, and the evaluator has the last word.
plan::PlanSet genetic(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate);

}  // namespace millrace::partitioners
