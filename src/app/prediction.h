// What the simulator says of a plan's program: the prediction that stands beside every measurement.
#pragma once

#include <optional>

#include "app/session.h"
#include "planner/fold_plan.h"
#include "program/program.h"
#include "sim/goodput.h"
#include "sim/simulate.h"

namespace millrace::app {

/// Training iterations of `program` in simulated time, as `simulation` of the experiment says, with the session's
/// costs.
sim::Simulation predict(const Session& session, const Program& program);

/// The same of a plan. Its figures by rank are those of the plan's devices; the timeline is the program's.
struct Prediction {
  planner::FoldedPlan folded;
  Program program;  ///< of what is left of the plan
  sim::Simulation run;
  planner::ProgramMemory
      memory;  ///< by rank of the whole plan: what the devices will hold, analytic where they are not known
};

/// \param every_rank  nothing is folded: the program is the one that would run.
Prediction predict_plan(const Session& session, const Plan& plan, bool every_rank = false);

/// What failures and checkpoints leave, where the experiment tells their costs.
std::optional<sim::Goodput> goodput(const Session& session);

}  // namespace millrace::app
