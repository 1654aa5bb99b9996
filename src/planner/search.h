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

namespace millrace::planner {

struct PartitionerChoice {
  std::string name;
  config::Values options;  ///< read against the registry row's records, defaults filled in
};

struct Request {
  plan::Problem problem;  ///< its schedule and micro_batches are set by the search
  std::vector<PartitionerChoice> partitioners;
  /// The user's own stages, as patterns (plan/op_patterns.h): taken as they are, in place of the partitioners.
  std::optional<std::vector<std::vector<std::string>>> explicit_stages;
  std::vector<std::string> schedules{"1f1b"};
  std::vector<std::int64_t> micro_batches;  ///< of each pipeline, to be tried; empty: auto
  std::size_t top = 5;                      ///< plans that are kept
};

/// What came of it.
struct Ranking {
  std::vector<plan::Candidate> plans;   ///< that fit, best first; empty: infeasible
  std::vector<plan::Refused> refusals;  ///< of shapes, and of plans that do not fit, in order of the search
  std::optional<Bytes> least_memory;    ///< when none fits: the smallest limit under which one of those found would

  /// Why there is no plan, for the user; empty when there is one.
  std::string why_not() const;
};

using MakeEvaluator = std::function<std::unique_ptr<plan::Evaluator>(const plan::Problem&)>;

/// Closed forms and counted bytes.
std::unique_ptr<plan::Evaluator> closed_form(const plan::Problem& problem);

/// 1, 2, 4, … up to the rows of a pipeline.
std::vector<std::int64_t> automatic_micro_batches(const plan::Problem& problem);

/// Runs every partitioner for every schedule and number of micro-batches. The same request gives the same ranking,
/// unless a time limit stops a partitioner.
/// \throws InvalidInput  unknown names, and explicit stages that are no cover (plan/explicit_stages.h).
Ranking search(const Request& request, const MakeEvaluator& make_evaluator = closed_form);

}  // namespace millrace::planner
