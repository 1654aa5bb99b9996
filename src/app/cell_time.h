// A guess of how long a cell takes, to be told before a sweep starts.
#pragma once

#include "app/arguments.h"
#include "app/session.h"
#include "app/sweep_file.h"

namespace millrace::app {

/// Seconds on one core (of a run: on as many as it has ranks); right within a factor of a few.
double expected_cell_seconds(const Session& session, CellCommand command, const Arguments& arguments);

}  // namespace millrace::app
