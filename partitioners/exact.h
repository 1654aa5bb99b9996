// The exact partitioner: a best plan of its class, with the proof that nothing in the class is better.
#pragma once

#include "config/values.h"
#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/problem.h"

namespace millrace::partitioners {

/// Limit on ideals, time limit.
config::Options exact_options();

/// Objectives throughput and bottleneck, by the closed forms of gpipe and 1f1b (METHODS 2, 5, 6). Class: equal
/// pipelines of equal shares; stages that are differences of ideals, so convex and in order; on each stage any number
/// of replicas, with rows by speed; devices in the cluster's order, every one used; no recomputation. Cost: what
/// plan::ClosedFormEvaluator says, transfers, exposed reduction and memory included. A plan that was searched to the
/// end has its value as bound, "exact optimum" as bound_source and the gap 0. The source says what of the problem lies
/// outside the class, if anything: other orders of unequal devices, recomputation. Where a tied parameter is cut, its
/// reduction between stages is left out of the search, and the bound may lie below the plan.
/// Graphs with more than `max_ideals` ideals are refused (Refusal::too_large). At the time limit: the best plan so far
/// with the bound of plan/bounds.h.
/// Objectives max_load, time_per_sample and pipedream: the searches of partitioners/common, which are optimal in their
/// planners' classes. The others are refused.
plan::PlanSet exact(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate);

}  // namespace millrace::partitioners
