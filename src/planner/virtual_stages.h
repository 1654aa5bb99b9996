// Plans for schedules that put several stages of a pipeline on a device: the graph is cut into as many stages as the
// schedule deals, and these go where it wants them.
#pragma once

#include <functional>

#include "config/values.h"
#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/problem.h"
#include "schedules/registry.h"

namespace millrace::planner {

/// Whether plans of the schedule have to be dealt.
bool deals_stages(const schedules::Entry& schedule);

/// Stages for each place of a pipeline: of in_turn its option `chunks`, 2 without one; of vee 2; of others 1.
int stages_of_place(const schedules::Entry& schedule, const config::Values& options);

/// Cuts for a problem with a device for each stage, fixed numbers of pipelines and stages. `part` of the time that all
/// cuts may take is this one's.
using CutStages = std::function<plan::PlanSet(const plan::Problem& problem, double part)>;

/// For every number of pipelines and places that the problem leaves open (Problem::stages counts the stages of a
/// pipeline, virtual ones included): cuts, dealt and judged. Places have equal numbers of devices, replicas of their
/// stages. First nothing limits the memory; where the dealt plan does not fit, the graph is cut again with an equal
/// part of each device's memory for each of its stages. Combinations that the schedule does not take are refused by its
/// own words before anything is cut.
plan::PlanSet virtual_stage_plans(const plan::Problem& problem, const config::Values& schedule_options,
                                  plan::Evaluator& evaluate, const CutStages& cut);

}  // namespace millrace::planner
