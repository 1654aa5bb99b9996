// What the launcher's environment says about the job: its number of ranks and the threads of each (INTERFACES 9).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::cluster {

/// Value of an environment variable; none where it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

/// The environment of this process.
Environment process_environment();

/// The number of ranks that a launcher meant to start, and the variable that says so.
struct LauncherSize {
  std::string variable;
  int size = 0;
};

/// Looks at OMPI_COMM_WORLD_SIZE, PMIX_SIZE, PMI_SIZE, SLURM_STEP_NUM_TASKS, SLURM_NTASKS, in this order; the first
/// that is set decides. None: not started by a launcher.
/// \throws InvalidInput  when it is no positive integer; names the variable.
std::optional<LauncherSize> launcher_size(const Environment& environment);

/// Refuses a job whose ranks do not know each other: the launcher started several, each saw a world of its own.
/// \throws InvalidInput  when MPI's world size differs from the launcher's; hints at --mpi=pmix.
void check_world_size(int world_size, const Environment& environment);

/// Refuses tasks that srun started without an interface by which MPI could make them one job: Open MPI would end them
/// with a text about how it was built. Before MPI starts.
/// \param alone  a command that needs no MPI may be the only task.
/// \throws InvalidInput  hints at --mpi=pmix.
void check_launch(const Environment& environment, bool alone);

/// Cores that this process may run on, ascending. \throws SystemError.
std::vector<int> affinity_cores();

/// Threads of a rank: OMP_NUM_THREADS if set (the first of a list); else the cores of its affinity mask divided by
/// the ranks of its host that share the same mask, at least 1.
/// \throws InvalidInput  when OMP_NUM_THREADS is no positive integer.
int threads_of_rank(const Environment& environment, std::size_t cores, int ranks_sharing_mask);

/// How many of the masks of a host's ranks equal `own` (at least 1, when `own` is among them).
int ranks_sharing_mask(std::span<const std::vector<int>> masks_of_host, const std::vector<int>& own);

}  // namespace millrace::cluster
