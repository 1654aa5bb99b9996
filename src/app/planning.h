// From a session to plans: what the experiment fixes, the search, and the programs of the best plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/arguments.h"
#include "app/session.h"
#include "base/errors.h"
#include "plan/objective.h"
#include "planner/search.h"
#include "runtime/trainer.h"

namespace millrace::app {

/// Counts of pipelines, stages, micro-batches and ranks that can never be used together: an error of one experiment, a
/// result among the cells of a sweep.
class Misfit : public InvalidInput {
 public:
  using InvalidInput::InvalidInput;
};

/// What the experiment's training adds to the graph.
plan::TrainingBytes training_bytes(const Experiment& experiment);

/// What is not asked for otherwise is hidden as far as the experiment allows: updates wait for the global norm only
/// where something needs it (METHODS 5, level 3).
Hiding hiding_of(const Experiment& experiment);

/// Plans, best first, and what was refused. `plans` is empty when none fits.
struct Planned {
  planner::Ranking ranking;
  std::string why_not;
  std::vector<std::string> choices;  ///< what the judge chose for the first plan beside its cut, a line each
};

/// Searches, or takes `plan.file` as it is.
/// \throws InvalidInput  settings that contradict each other or the number of ranks.
Planned make_plans(const Session& session, const Arguments& arguments, plan::Exchange* exchange = nullptr);

/// What make_plans() would refuse before it searches. \throws InvalidInput, Misfit.
void check_plan_settings(const Session& session, const Arguments& arguments);

/// The same on rank 0 of a job; other ranks get nothing of use. All ranks search where a partitioner does so.
Planned make_plans_together(const Session& session, const Arguments& arguments, const comm::World& world);

/// The best of them. \throws Error  (ExitCode::infeasible) when there is none; under JSON the document is printed then.
plan::Candidate& best_of(const Session& session, const Arguments& arguments, Planned& planned);

/// The best plan on every rank, with its report on rank 0.
/// \throws Error  (SharedError, ExitCode::infeasible) when none fits.
struct Chosen {
  Plan plan;
  std::optional<plan::PlanReport> report;
};
Chosen choose_plan(const Session& session, const Arguments& arguments, const comm::World& world);

/// Training and evaluation programs, lowered and verified, for the batches that the data gives.
/// \param test_samples  0: no evaluation.
runtime::Programs make_programs(const Session& session, const Plan& plan, std::int64_t train_samples,
                                std::int64_t test_samples, std::int64_t tag_limit);

/// The program of one full training batch.
Program training_program(const Session& session, const Plan& plan, std::int64_t batch, std::int64_t tag_limit);

}  // namespace millrace::app
