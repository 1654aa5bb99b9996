// Starts MPI, finds the sub-command, and turns every error into one message and one exit code.
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "app/arguments.h"
#include "app/commands.h"
#include "base/errors.h"
#include "base/log.h"
#include "cluster/launcher.h"
#include "comm/mpi/world.h"
#include "planner/plugin.h"

namespace {

using millrace::Error;
using millrace::ExitCode;
using millrace::app::Arguments;
using millrace::comm::World;

struct Command {
  const char* name;
  ExitCode (*function)(const Arguments&, World&);
};

constexpr Command kCommands[]{
    {"run", millrace::app::run},
    {"plan", millrace::app::plan},
    {"check", millrace::app::check},
    {"verify", millrace::app::verify},
    {"profile", millrace::app::profile},
    {"simulate", millrace::app::simulate},
    {"shard", millrace::app::shard_graph},
    {"sweep", millrace::app::sweep},
    {"report", millrace::app::report},
    {"compare", millrace::app::compare},
    {"watch", millrace::app::watch},
    {"import", millrace::app::import_graph},
    {"data", millrace::app::convert_data},
    {"models", millrace::app::list_models},
    {"partitioners", millrace::app::list_partitioners},
    {"schedules", millrace::app::list_schedules},
    {"clusters", millrace::app::list_clusters},
    {"bench", millrace::app::bench},
    {"doctor", millrace::app::doctor},
};

// All ranks parse the same words, so they meet the same errors.
Arguments parse(int argc, char** argv, const World& world) {
  try {
    return millrace::app::parse_command_line(argc, argv, world.root());
  } catch (const Error& error) {
    throw millrace::comm::SharedError(error.code(), error.what());
  }
}

// Rank 0 first: what is wrong with a file is told once.
void load_plugins(const Arguments& arguments, const World& world) {
  const auto load = [&] {
    for (const std::string& file : arguments.plugins) millrace::planner::load_plugin(file);
    return std::string();
  };
  world.on_root_then_all(load);
  if (!world.root()) load();
}

ExitCode dispatch(int argc, char** argv, World& world) {
  const Arguments arguments = parse(argc, argv, world);
  if (arguments.command.empty()) return ExitCode::done;
  using millrace::log::Level;
  millrace::log::configure(arguments.quiet     ? Level::quiet
                           : arguments.verbose ? Level::verbose
                                               : Level::normal,
                           world.root() ? "" : fmt::format("rank {} on {}", world.rank(), world.host()));
  load_plugins(arguments, world);
  for (const Command& command : kCommands) {
    if (arguments.command == command.name) return command.function(arguments, world);
  }
  return ExitCode::internal;
}

// Each task finds the same fault: the first one tells it.
void check_launch(const millrace::cluster::Environment& environment, bool alone) {
  try {
    millrace::cluster::check_launch(environment, alone);
  } catch (const Error& error) {
    throw millrace::comm::SharedError(error.code(), error.what());
  }
}

bool trains(std::string_view command) { return command == "run" || command == "verify" || command == "profile"; }

bool set_where_missing(const char* name, const char* value) {
  return std::getenv(name) == nullptr && ::setenv(name, value, 0) == 0;
}

// What libraries read when they are loaded, before main(): the program starts once more with what the user has not set.
// Where that fails it goes on as it is. Its own path keeps its name in lists of processes, where /proc/self/exe would
// be `exe`; a program that was given to the loader as a word has the loader's.
// - Threads of OpenMP that spin while they wait keep the core from the one that they wait for, where another process
//   takes it: then a step takes many times as long. They spin some 50 us, which meets most of them on a quiet machine,
//   then sleep.
// - glibc's malloc cuts pieces from aligned memory and keeps seven of each size in a thread's cache. What lies beside a
//   piece does not become whole again: where oneDNN takes megabytes for the time of a product, eight of them stay.
// - hwloc, through which MPI sees the machine, looks for displays and OpenCL devices: a dozen libraries in
//   each process.
void set_up_libraries(int argc, char** argv) {
  if (argc < 2 || !trains(argv[1]) || ::getauxval(AT_BASE) == 0) return;
  bool set = false;
  if (std::getenv("GOMP_SPINCOUNT") == nullptr && set_where_missing("OMP_WAIT_POLICY", "passive")) {
    set = ::setenv("GOMP_SPINCOUNT", "1000", 0) == 0;
  }
  set = set_where_missing("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0") || set;
  set = set_where_missing("HWLOC_PLUGINS_BLACKLIST", "hwloc_gl,hwloc_opencl") || set;
  std::error_code failed;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (set && !failed) ::execv(program.c_str(), argv);
}

// Planning and looking things up work without MPI, on a login node too; under a launcher every command joins its job.
World start(int& argc, char**& argv) {
  const std::string_view word = argc > 1 ? argv[1] : "";
  const bool joins = trains(word) || word == "doctor";
  bool launched = false;
  check_launch(millrace::cluster::process_environment(), !joins);
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) {
    launched = launched || std::getenv(name) != nullptr;
  }
  if (joins || launched) return World(&argc, &argv);
  return World();
}

// The standard library throws these where the system refuses a thread.
std::string refused(const std::system_error& error) {
  if (error.code() == std::errc::resource_unavailable_try_again) {
    return "the system refused to start a thread: a limit on processes (ulimit -u), on memory (ulimit -v, ulimit -s) "
           "or of the job is reached";
  }
  return fmt::format("the system refused a call: {}", error.what());
}

// An error that all ranks have ends them in order; an error of one rank alone is said by that rank and ends the job
// at once, since the others may wait for it (REPORTS C07).
int run_in(World& world, int argc, char** argv) {
  ExitCode code = ExitCode::internal;
  try {
    code = dispatch(argc, argv, world);
  } catch (const millrace::comm::SharedError& error) {
    if (world.root()) millrace::log::error(error.what());
    code = error.code();
  } catch (const Error& error) {
    millrace::log::error(error.what());
    code = error.code();
    if (world.size() > 1) world.abort(code);
  } catch (const std::bad_alloc&) {
    millrace::log::error("out of memory: the system refused an allocation; `millrace check` tells what the plan needs");
    code = ExitCode::failed;
    if (world.size() > 1) world.abort(code);
  } catch (const std::system_error& error) {
    millrace::log::error(refused(error));
    code = ExitCode::failed;
    if (world.size() > 1) world.abort(code);
  } catch (const std::exception& error) {
    millrace::log::error(fmt::format("internal error: {}", error.what()));
    if (world.size() > 1) world.abort(ExitCode::internal);
  }
  world.finish();
  return static_cast<int>(code);
}

}  // namespace

int main(int argc, char** argv) {
  set_up_libraries(argc, argv);
  try {
    World world = start(argc, argv);
    return run_in(world, argc, argv);
  } catch (const millrace::comm::SharedError& error) {  // of tasks that are no job
    const char* task = std::getenv("SLURM_PROCID");
    if (task == nullptr || std::string_view(task) == "0") millrace::log::error(error.what());
    return static_cast<int>(error.code());
  } catch (const Error& error) {  // MPI did not start, or did not end
    millrace::log::error(error.what());
    return static_cast<int>(error.code());
  }
}
