// The device-aware partitioner: groups of devices of equal speed together, each a pipeline cut by capacity.
#pragma once

#include "config/values.h"
#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/problem.h"

namespace millrace::partitioners {

/// Time limit.
config::Options device_aware_options();

/// METHODS 6, last paragraph: devices are dealt into groups with equal sums of speeds; synchronous data parallel
/// between the groups, with parts of the batch by what each group gets through, capped by memory; a pipeline inside
/// each, cut so that the work of each device follows its capacity, devices with more memory first. Any number of
/// groups up to 16, beyond that those that divide the devices; stages of one device each, or of teams of devices whose
/// rows follow their speeds. One plan for each number of groups: the best by the evaluator.
plan::PlanSet device_aware(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate);

}  // namespace millrace::partitioners
