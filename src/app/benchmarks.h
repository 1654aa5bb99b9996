// What `millrace bench` runs, each on rank 0 of a world of one.
#pragma once

#include "app/arguments.h"
#include "base/errors.h"

namespace millrace::app {

ExitCode bench_planner(const Arguments& arguments);
ExitCode bench_simulator(const Arguments& arguments);
ExitCode bench_sharding(const Arguments& arguments);
ExitCode bench_train(const Arguments& arguments);

}  // namespace millrace::app
