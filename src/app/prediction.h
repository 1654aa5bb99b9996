// What the simulator says of a plan's program: the prediction that stands beside every measurement.
#pragma once

#include <optional>

#include "app/session.h"
#include "plan/report.h"
#include "program/program.h"
#include "sim/goodput.h"
#include "sim/simulate.h"

namespace millrace::app {

/// Training iterations of `program` in simulated time, as `simulation` of the experiment says, with the session's
/// costs.
sim::Simulation predict(const Session& session, const Program& program);

/// What failures and checkpoints leave, where the experiment tells their costs.
std::optional<sim::Goodput> goodput(const Session& session);

/// Puts the simulated times in place of the closed forms' ones.
void take_times(const Session& session, const sim::Simulation& simulation, plan::PlanReport& report);

}  // namespace millrace::app
