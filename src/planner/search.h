// The search for a plan: every partitioner asked for, over schedules and micro-batch counts, ranked by one evaluator.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/values.h"
#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/problem.h"
#include "planner/program_memory.h"
#include "planner/recompute_mask.h"

namespace millrace::planner {

struct PartitionerChoice {
  std::string name;
  config::Values options;  ///< read against the registry row's records, defaults filled in
};

struct ScheduleChoice {
  std::string name;
  config::Values options;  ///< read against the registry row's records, defaults filled in

  /// With the defaults. \throws InvalidInput  a name that is not there.
  static ScheduleChoice of(const std::string& name);
};

struct Request {
  plan::Problem problem;  ///< its schedule and micro_batches are set by the search
  std::vector<PartitionerChoice> partitioners;
  /// The user's own stages, as patterns (plan/op_patterns.h): taken as they are, in place of the partitioners.
  std::optional<std::vector<std::vector<std::string>>> explicit_stages;
  std::vector<ScheduleChoice> schedules{ScheduleChoice::of("1f1b")};
  std::vector<std::int64_t> micro_batches;  ///< of each pipeline, to be tried; empty: auto
  RecomputeMask recompute{};                ///< of operators, beyond Problem::recompute
  std::vector<int> warmup{};                ///< of each plan (Pipeline::warmup); empty: the schedule's own
  std::size_t top = 5;                      ///< plans that are kept
  bool judged_again = false;                ///< by another judge: each schedule keeps its part of `top`
  Seconds patience{1};                      ///< where nothing fits, to look for the least memory that does
  /// What the ranks of a plan hold, from the devices that run it (planner/simulated_ranking.h): the least memory is
  /// that. Empty: counted bytes.
  std::function<std::optional<ProgramMemory>(const Plan&)> device_memory{};
};

/// What is known of the memory that each device needs, when no plan fits (REPORTS M02).
struct LeastMemory {
  Bytes limit{};         ///< with this much on every device one of the partitioners' plans fits
  bool minimal = false;  ///< with one byte less none of them has a plan
  std::string stage{};   ///< that needs it: "stage 0 of pipeline 0"
};

/// What came of it.
struct Ranking {
  std::vector<plan::Candidate> plans;   ///< that fit, best first, each once; empty: infeasible
  std::vector<plan::Refused> refusals;  ///< of shapes, and of plans that do not fit, in order of the search
  std::optional<LeastMemory> least_memory;
  std::size_t shared_cuts = 0;  ///< answers of partitioners that were those for another schedule

  /// Why there is no plan, for the user; empty when there is one.
  std::string why_not() const;
};

using MakeEvaluator = std::function<std::unique_ptr<plan::Evaluator>(const plan::Problem&)>;

/// Closed forms and counted bytes.
std::unique_ptr<plan::Evaluator> closed_form(const plan::Problem& problem);

/// What `micro_batches: auto` tries: 1, 2, 4, … up to the rows of a pipeline. On large problems only so many of them,
/// evenly spread, as `kAutomaticWork` operators × devices allow, at least one; for objectives of published planners,
/// whose formulas know or fix the number themselves, 1.
std::vector<std::int64_t> automatic_micro_batches(const plan::Problem& problem);
inline constexpr double kAutomaticWork = 5e7;

/// Runs every partitioner for every schedule and number of micro-batches; schedules that put several stages on a device
/// have theirs dealt (virtual_stages.h), and plans that break a rule of their schedule are refused in its words. For
/// objectives of published planners, which know no schedule, for the first schedule. A partitioner's time limit is for
/// all of its calls together; schedules that a partitioner cuts alike share its answer. The same request gives the same
/// ranking, unless a time limit stops a partitioner or what makes `least_memory` minimal. With Problem::exchange all
/// ranks call it; the ranking is rank 0's. \throws InvalidInput  unknown names, and explicit stages that are no cover
/// (plan/explicit_stages.h).
Ranking search(const Request& request, const MakeEvaluator& make_evaluator = closed_form);

/// The same, with `least_memory` as the plans that do not fit tell it, not yet minimal.
Ranking plans_under(const Request& request, const MakeEvaluator& make_evaluator);

/// "stage 0 of pipeline 0": the one whose replicas hold the most.
std::string fullest_stage(const plan::PlanReport& report);

}  // namespace millrace::planner
