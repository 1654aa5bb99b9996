// Reads launcher variables, OMP_NUM_THREADS and the affinity mask.
#include "cluster/launcher.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include <sched.h>

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace::cluster {
namespace {

int positive(const char* variable, std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) {
    throw InvalidInput(fmt::format("{} is '{}'; allowed: a positive integer", variable, text));
  }
  return value;
}

}  // namespace

Environment process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

std::optional<LauncherSize> launcher_size(const Environment& environment) {
  static constexpr std::array kVariables{"OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS",
                                         "SLURM_NTASKS"};
  for (const char* variable : kVariables) {
    if (const auto text = environment(variable)) return LauncherSize{variable, positive(variable, *text)};
  }
  return std::nullopt;
}

void check_world_size(int world_size, const Environment& environment) {
  const auto launcher = launcher_size(environment);
  if (!launcher || launcher->size == world_size) return;
  throw InvalidInput(fmt::format(
      "the launcher started {} ranks ({}), but MPI has a world of {}: start with the mpirun of the MPI that "
      "millrace was built with, or under Slurm with srun --mpi=pmix",
      launcher->size, launcher->variable, world_size));
}

void check_launch(const Environment& environment, bool alone) {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) {
    if (environment(variable)) return;
  }
  const auto tasks = environment("SLURM_STEP_NUM_TASKS");
  if (!tasks) return;
  const int count = positive("SLURM_STEP_NUM_TASKS", *tasks);
  if (alone && count == 1) return;
  throw InvalidInput(
      fmt::format("srun started {} (SLURM_STEP_NUM_TASKS) without PMIx, so that each would be a job of its own: start "
                  "with srun --mpi=pmix",
                  count == 1 ? "a task" : fmt::format("{} tasks", count)));
}

std::vector<int> affinity_cores() {
  // The kernel refuses a mask that is too small for the machine: grow it until it fits.
  for (int cpus = 1024; cpus <= (1 << 20); cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    const std::size_t bytes = CPU_ALLOC_SIZE(cpus);
    const int failed = sched_getaffinity(0, bytes, set);
    const int code = errno;
    std::vector<int> cores;
    for (int cpu = 0; failed == 0 && cpu < cpus; ++cpu) {
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set)) cores.push_back(cpu);
    }
    CPU_FREE(set);
    if (failed == 0) return cores;
    if (code != EINVAL) throw SystemError(fmt::format("sched_getaffinity: {}", std::strerror(code)));
  }
  throw SystemError("sched_getaffinity: more than a million cores");
}

int threads_of_rank(const Environment& environment, std::size_t cores, int ranks_sharing_mask) {
  if (const auto text = environment("OMP_NUM_THREADS")) {
    return positive("OMP_NUM_THREADS", std::string_view(*text).substr(0, text->find(',')));
  }
  return std::max(1, static_cast<int>(cores) / std::max(1, ranks_sharing_mask));
}

int ranks_sharing_mask(std::span<const std::vector<int>> masks_of_host, const std::vector<int>& own) {
  return static_cast<int>(std::count(masks_of_host.begin(), masks_of_host.end(), own));
}

}  // namespace millrace::cluster
