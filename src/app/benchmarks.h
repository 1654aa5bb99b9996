// What `millrace bench` runs, all but one on rank 0 of a world of one.
#pragma once

#include "app/arguments.h"
#include "base/errors.h"
#include "comm/mpi/world.h"

namespace millrace::app {

ExitCode bench_planner(const Arguments& arguments);
ExitCode bench_simulator(const Arguments& arguments);
ExitCode bench_sharding(const Arguments& arguments);
ExitCode bench_train(const Arguments& arguments);
/// On all ranks of a job.
ExitCode bench_transport(const Arguments& arguments, comm::World& world);

}  // namespace millrace::app
