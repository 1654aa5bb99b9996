// The sub-commands: each takes the arguments and the ranks, prints on rank 0 and returns an exit code.
#pragma once

#include "app/arguments.h"
#include "base/errors.h"
#include "comm/mpi/world.h"

namespace millrace::app {

ExitCode run(const Arguments& arguments, comm::World& world);
ExitCode plan(const Arguments& arguments, comm::World& world);
ExitCode check(const Arguments& arguments, comm::World& world);
ExitCode verify(const Arguments& arguments, comm::World& world);
ExitCode profile(const Arguments& arguments, comm::World& world);
ExitCode simulate(const Arguments& arguments, comm::World& world);
ExitCode shard_graph(const Arguments& arguments, comm::World& world);
ExitCode sweep(const Arguments& arguments, comm::World& world);
ExitCode report(const Arguments& arguments, comm::World& world);
ExitCode compare(const Arguments& arguments, comm::World& world);
ExitCode watch(const Arguments& arguments, comm::World& world);
ExitCode import_graph(const Arguments& arguments, comm::World& world);
ExitCode convert_data(const Arguments& arguments, comm::World& world);
ExitCode list_models(const Arguments& arguments, comm::World& world);
ExitCode list_partitioners(const Arguments& arguments, comm::World& world);
ExitCode list_schedules(const Arguments& arguments, comm::World& world);
ExitCode list_clusters(const Arguments& arguments, comm::World& world);
ExitCode bench(const Arguments& arguments, comm::World& world);
ExitCode doctor(const Arguments& arguments, comm::World& world);

}  // namespace millrace::app
