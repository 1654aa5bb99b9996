// Jobs under a real Slurm of four nodes, which these tests start themselves: what its signals, its queue and a lost
// node do to a run, and sweeps as job arrays.
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include <sys/wait.h>

#include "tests/cli/expect.h"

namespace millrace::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

class Slurm : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new storage::TemporaryFolder();
    ::setenv("SLURM_CONF", (*folder_ / "slurm.conf").c_str(), 1);
    ::setenv("MILLRACE", MILLRACE_PROGRAM, 1);
    started_ = shell(MILLRACE_SOURCE_DIR "/tests/cli/slurm_cluster.sh start " + (*folder_ / "").string()) == 0;
  }
  static void TearDownTestSuite() {
    shell(MILLRACE_SOURCE_DIR "/tests/cli/slurm_cluster.sh stop " + (*folder_ / "").string());
    ::unsetenv("SLURM_CONF");
    ::unsetenv("MILLRACE");
    delete folder_;
  }
  void SetUp() override {
    ASSERT_TRUE(started_) << "no Slurm: scripts/dependencies.sh --tests installs it; it needs root";
  }

  static int shell(const std::string& command) {
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  int in_place(const std::string& command) const {
    return shell("cd " + (place_ / "").string() + " && " + command + " > said.out 2> said.err");
  }
  std::string said(const std::string& file) const { return text_of(place_ / file); }

  void until(const std::string& what, const std::function<bool()>& holds) const {
    constexpr int kTries = 450;
    for (int i = 0; i < kTries; ++i) {
      if (holds()) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    in_place("squeue; tail -n 20 *.out");
    FAIL() << "never came: " << what << "\n" << said("said.out");
  }

  // Rows of the run's table, 0 where there is none yet.
  std::int64_t rows() const {
    const Outcome seen = place_.run({"watch", "results/tiny.h5", "--format", "json"});
    const std::size_t last = seen.out.rfind("\n", seen.out.size() - 2);
    const json line = json::parse(seen.out.substr(last == std::string::npos ? 0 : last + 1), nullptr, false);
    return seen.code == 0 && line.is_object() ? line.value("rows", std::int64_t{0}) : 0;
  }

  inline static storage::TemporaryFolder* folder_ = nullptr;
  inline static bool started_ = false;
  Workplace place_;
};

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_F(Slurm, TasksThatAreNoJobAreRefusedWithTheHint) {
  place_.write("e.yaml", tiny());
  EXPECT_EQ(in_place("srun --ntasks=2 " MILLRACE_PROGRAM " run e.yaml"), 2);
  EXPECT_THAT(said("said.err"), AllOf(HasSubstr("srun started 2 tasks"), HasSubstr("--mpi=pmix")));
  EXPECT_EQ(count_of(said("said.err"), "millrace: error"), 1U);
  EXPECT_EQ(in_place("srun --ntasks=2 --mpi=pmix " MILLRACE_PROGRAM " run e.yaml --quiet"), 0) << said("said.err");
}

TEST_F(Slurm, AJobGoesOnAfterItsLimitAndAfterALostNode) {
  place_.write("e.yaml", tiny("train: {iterations: 3000000, checkpoint: {every: 200, keep: 2}}\n"));
  ASSERT_EQ(in_place(MILLRACE_SOURCE_DIR "/slurm/launch --ranks 4 --nodes 2 e.yaml -- --parsable --ntasks-per-node=2"),
            0)
      << said("said.err");
  const std::string job = said("said.out").substr(0, said("said.out").find('\n'));
  const std::string out = "e-" + job + ".out";
  until("rows", [&] { return rows() > 0; });
  // What Slurm does before the limit.
  ASSERT_EQ(in_place("scancel --batch --signal=USR1 " + job), 0);
  until("the requeue", [&] { return count_of(said(out), "stopped by a signal after iteration") == 1; });
  const std::int64_t before = rows();
  until("more rows", [&] { return rows() > before; });
  EXPECT_EQ(count_of(said(out), "going on from "), 1U) << said(out);
  // A node is lost: the job goes to the others.
  ASSERT_EQ(in_place("squeue -h -j " + job + " -o %B"), 0);
  const std::string node = said("said.out").substr(0, said("said.out").find('\n'));
  ASSERT_EQ(in_place(MILLRACE_SOURCE_DIR "/tests/cli/slurm_cluster.sh fail " + (*folder_ / "").string() + " " + node),
            0)
      << said("said.err");
  until("the second start", [&] { return count_of(said(out), "going on from ") == 2; });
  EXPECT_EQ(in_place("squeue -h -j " + job + " -o %N"), 0);
  EXPECT_EQ(said("said.out").find(node), std::string::npos) << said("said.out");
  EXPECT_EQ(in_place("scancel " + job), 0);
  until("the end", [&] { return in_place("squeue -h -j " + job) != 0 || said("said.out").empty(); });
}

// The template for GPUs, under the worst name that a file may have: what each task is given is seen by a stand-in for
// the program.
TEST_F(Slurm, EveryRankHasAGpuOfItsOwn) {
  const std::string name = "my run & it's 5% \"x\" a|b";
  place_.write(name + ".yaml", tiny());
  place_.write("seen.sh",
               "#!/bin/bash\n[ \"$1\" = run ] || exec " MILLRACE_PROGRAM
               " \"$@\"\n"
               "echo \"rank $SLURM_PROCID of $SLURM_NTASKS on $(hostname): GPU '$CUDA_VISIBLE_DEVICES', bound to "
               "$SLURM_CPU_BIND_TYPE, threads $OMP_NUM_THREADS, ${@:2:3}\"\n");
  ASSERT_EQ(in_place("chmod +x seen.sh; MILLRACE=$PWD/seen.sh " MILLRACE_SOURCE_DIR
                     "/slurm/launch --gpu --nodes 2 --ranks 4 --cpus 2 'my run & it'\\''s 5% \"x\" a|b.yaml'"
                     " --set 'train.optimizer={kind: sgd, lr: 0.1}' -- --parsable"),
            0)
      << said("said.err");
  const std::string job = said("said.out").substr(0, said("said.out").find('\n'));
  const std::string out = name + "-" + job + ".out";
  until("four ranks", [&] { return count_of(said(out), "--set train.optimizer={kind: sgd, lr: 0.1}") == 4; });
  std::set<std::string> places;
  for (int rank = 0; rank < 4; ++rank) {
    const std::string text = said(out);
    const std::size_t begin = text.find("rank " + std::to_string(rank) + " of 4 on ");
    ASSERT_NE(begin, std::string::npos) << text;
    const std::string line = text.substr(begin, text.find('\n', begin) - begin);
    EXPECT_THAT(line, HasSubstr(", bound to cores, threads 2, " + name + ".yaml "));
    const std::size_t host = line.find("fake");
    places.insert(line.substr(host, line.find(',') - host));
  }
  EXPECT_EQ(places.size(), 4U) << said(out);
  for (const std::string& place : places) {
    EXPECT_THAT(place, AnyOf(HasSubstr("GPU '0'"), HasSubstr("GPU '1'")));
  }
}

constexpr const char* kSweep =
    "sweep: s\nbase:\n  model: {name: mlp, options: {inputs: 16, hidden: [32, 32], classes: 4}}\n  data: {batch: 64}\n"
    "  cluster: {flat: {devices: 2, bandwidth: 1 GB/s}}\n"
    "matrix:\n  plan.partitioner: [dp, layer_equal]\n  plan.micro_batches: [1, 2, 4]\n  plan.memory_limit: [1 GiB, 1 "
    "kB]\n";

TEST_F(Slurm, ASweepIsArraysThatAreMerged) {
  place_.write("s.yaml", kSweep);
  const Outcome outcome =
      place_.run({"sweep", "s.yaml", "--slurm", "--max-array", "5", "--throttle", "4", "--sbatch", "--nice=1"});
  expect_done(place_, outcome);
  EXPECT_THAT(outcome.out, HasSubstr("12 cells submitted as 3 arrays"));
  const std::string first = said("results/s.slurm/array-000.sbatch"), last = said("results/s.slurm/array-002.sbatch");
  EXPECT_THAT(first, HasSubstr("#SBATCH --array=0-4%4\n"));
  EXPECT_THAT(last, AllOf(HasSubstr("#SBATCH --array=0-1%4\n"), HasSubstr("--cell $((11 + SLURM_ARRAY_TASK_ID))")));
  until("the merged table", [&] { return count_of(said("results/s.csv"), "\n") == 13; });
  until("the end", [&] { return in_place("squeue -h") == 0 && said("said.out").empty(); });
  EXPECT_EQ(count_of(said("results/s.csv"), ",done,"), 6U);
  EXPECT_EQ(count_of(said("results/s.csv"), ",infeasible,"), 6U);
  EXPECT_EQ(count_of(said("results/s.jsonl"), "\n"), 12U);
  EXPECT_EQ(in_place("ls results/s.slurm/*.json"), 2) << said("said.out");  // each counts once
  const Outcome again = place_.run({"sweep", "s.yaml", "--slurm", "--resume"});
  expect_done(place_, again);
  EXPECT_THAT(again.out, HasSubstr("nothing is missing"));
}

TEST_F(Slurm, WhatIsNotSubmittedIsTold) {
  place_.write("s.yaml", kSweep);
  place_.write("bin/sbatch", "#!/bin/sh\n[ -e first ] && exit 1\ntouch first\necho 7\n");
  ASSERT_EQ(in_place("chmod +x bin/sbatch"), 0);
  const std::string path = (place_ / "bin").string() + ":" + std::getenv("PATH");
  const Outcome outcome =
      place_.run({"sweep", "s.yaml", "--slurm", "--max-array", "5", "--quiet"}, {.environment = {{"PATH", path}}});
  expect_one_error(place_, outcome, 4, {"sbatch refused", "tasks 6 to 12 of 12 are not submitted"});
}

}  // namespace
}  // namespace millrace::cli
