// Launcher variables, threads of a rank and affinity, by INTERFACES 9.
#include "cluster/launcher.h"

#include <map>

#include <gmock/gmock.h>

#include "base/errors.h"

namespace millrace::cluster {
namespace {

using testing::HasSubstr;

Environment variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(LauncherSize, FirstVariableOfTheListDecides) {
  EXPECT_FALSE(launcher_size(variables({})));
  EXPECT_EQ(launcher_size(variables({{"SLURM_NTASKS", "8"}}))->size, 8);
  EXPECT_EQ(launcher_size(variables({{"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "4"}}))->size, 4);
  EXPECT_EQ(launcher_size(variables({{"SLURM_STEP_NUM_TASKS", "4"}, {"PMI_SIZE", "3"}}))->size, 3);
  const auto open_mpi = launcher_size(variables({{"PMI_SIZE", "3"}, {"OMPI_COMM_WORLD_SIZE", "2"}}));
  EXPECT_EQ(open_mpi->size, 2);
  EXPECT_EQ(open_mpi->variable, "OMPI_COMM_WORLD_SIZE");
}

TEST(LauncherSize, RefusesWhatIsNoCount) {
  for (const char* text : {"", "0", "-2", "4x", "4.0", "99999999999"}) {
    EXPECT_THROW(launcher_size(variables({{"PMI_SIZE", text}})), InvalidInput) << text;
  }
}

TEST(WorldSize, SeparateWorldsAreRefusedWithAHint) {
  EXPECT_NO_THROW(check_world_size(1, variables({})));
  EXPECT_NO_THROW(check_world_size(4, variables({{"OMPI_COMM_WORLD_SIZE", "4"}})));
  try {
    check_world_size(1, variables({{"SLURM_STEP_NUM_TASKS", "4"}}));
    FAIL() << "not refused";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("4 ranks (SLURM_STEP_NUM_TASKS)"));
    EXPECT_THAT(error.what(), HasSubstr("world of 1"));
    EXPECT_THAT(error.what(), HasSubstr("--mpi=pmix"));
  }
}

TEST(WorldSize, TasksWithoutAnInterfaceAreRefusedBeforeMpiStarts) {
  EXPECT_NO_THROW(check_launch(variables({}), false));
  EXPECT_NO_THROW(check_launch(variables({{"SLURM_NTASKS", "4"}}), false));  // a batch script, which starts mpirun
  EXPECT_NO_THROW(check_launch(variables({{"SLURM_STEP_NUM_TASKS", "4"}, {"PMIX_RANK", "1"}}), false));
  EXPECT_NO_THROW(check_launch(variables({{"SLURM_STEP_NUM_TASKS", "4"}, {"OMPI_COMM_WORLD_SIZE", "2"}}), false));
  EXPECT_NO_THROW(check_launch(variables({{"SLURM_STEP_NUM_TASKS", "1"}}), true));
  EXPECT_THROW(check_launch(variables({{"SLURM_STEP_NUM_TASKS", "1"}}), false), InvalidInput);
  try {
    check_launch(variables({{"SLURM_STEP_NUM_TASKS", "2"}}), true);
    FAIL() << "not refused";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("2 tasks (SLURM_STEP_NUM_TASKS)"));
    EXPECT_THAT(error.what(), HasSubstr("--mpi=pmix"));
  }
}

TEST(Threads, OpenMpVariableElseShareOfTheMask) {
  EXPECT_EQ(threads_of_rank(variables({{"OMP_NUM_THREADS", "3"}}), 8, 4), 3);
  EXPECT_EQ(threads_of_rank(variables({{"OMP_NUM_THREADS", "3,2"}}), 8, 4), 3);
  EXPECT_EQ(threads_of_rank(variables({}), 8, 4), 2);
  EXPECT_EQ(threads_of_rank(variables({}), 8, 3), 2);
  EXPECT_EQ(threads_of_rank(variables({}), 2, 4), 1);
  EXPECT_THROW(threads_of_rank(variables({{"OMP_NUM_THREADS", "many"}}), 8, 4), InvalidInput);
}

TEST(Threads, RanksThatShareAMask) {
  const std::vector<std::vector<int>> masks{{0, 1}, {0, 1}, {2, 3}, {0, 1}};
  EXPECT_EQ(ranks_sharing_mask(masks, {0, 1}), 3);
  EXPECT_EQ(ranks_sharing_mask(masks, {2, 3}), 1);
}

TEST(Affinity, ThisProcessMayRunSomewhere) {
  const std::vector<int> cores = affinity_cores();
  ASSERT_FALSE(cores.empty());
  EXPECT_TRUE(std::is_sorted(cores.begin(), cores.end()));
}

}  // namespace
}  // namespace millrace::cluster
