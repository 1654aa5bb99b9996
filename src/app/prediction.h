// What the simulator says of a plan's program: the prediction that stands beside every measurement.
#pragma once

#include "app/session.h"
#include "plan/report.h"
#include "program/program.h"
#include "sim/simulate.h"

namespace millrace::app {

/// One training iteration of `program` in simulated time, with the session's costs.
sim::Simulation predict(const Session& session, const Program& program);

/// Puts the simulated times in place of the closed forms' ones.
void take_times(const Session& session, const sim::Simulation& simulation, plan::PlanReport& report);

}  // namespace millrace::app
