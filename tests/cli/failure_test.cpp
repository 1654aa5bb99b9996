// Runs that fail on the way: lost, stopped and failing ranks, diverging numbers, a full disk. The job ends with its
// code, says why once, leaves no process, and its results can be read (REPORTS C06, D02, L01, L04, N10).
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <numeric>
#include <thread>

#include <sys/mount.h>

#include "storage/file.h"
#include "tests/cli/expect.h"

namespace millrace::cli {
namespace {

using testing::Each;
using testing::IsEmpty;

constexpr const char* kResults = "results/tiny.h5";

// Rows are whole: numbered from 1 without a gap.
std::size_t rows_of(const std::filesystem::path& file) {
  const std::vector<std::int64_t> numbers = storage::File::open(file).table("iterations").column_integers("iteration");
  std::vector<std::int64_t> expected(numbers.size());
  std::iota(expected.begin(), expected.end(), 1);
  EXPECT_EQ(numbers, expected);
  return numbers.size();
}

void wait_for_file(const Job& job, const std::filesystem::path& file) {
  job.until("it made its results", [&] { return std::filesystem::exists(file); });
}

void wait_for_rows(const Job& job, const std::filesystem::path& file) {
  wait_for_file(job, file);
  job.until("it wrote rows", [&] { return storage::File::open(file).table("iterations").rows() > 0; });
}

TEST(Failure, AKilledRankEndsTheJob) {
  const Workplace place;
  place.write("e.yaml", endless());
  Job job(place, {"run", "e.yaml"}, {4});
  wait_for_rows(job, place / kResults);
  const auto before = rows_of(place / kResults);
  ::kill(job.rank(2), SIGKILL);
  const Outcome outcome = job.wait();
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(place.left_over(), IsEmpty());
  EXPECT_GE(rows_of(place / kResults), before);
  EXPECT_EQ(storage::File::open(place / kResults).text("status"), "running");
  // All readers see that no one writes.
  EXPECT_THAT(place.run({"watch", kResults}).out, testing::HasSubstr("ended without a word: killed: "));
  EXPECT_THAT(place.run({"report", kResults}).out, testing::HasSubstr("killed"));
  // The lock of the dead run is taken over.
  expect_done(place, place.run({"run", "e.yaml", "--overwrite", "--set", "train.iterations=2"}, {4}));
}

TEST(Failure, AKillAtAnyMomentLeavesAFileThatOpens) {
  const Workplace place;
  place.write("e.yaml", endless());
  for (const int after_ms : {0, 5, 170, 510}) {
    Job job(place, {"run", "e.yaml", "--overwrite"}, {4});
    const pid_t writer = job.rank(0);
    if (after_ms > 0) wait_for_file(job, place / kResults);
    std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));
    ::kill(writer, SIGKILL);
    EXPECT_NE(job.wait().code, 0);
    EXPECT_THAT(place.left_over(), IsEmpty());
    if (std::filesystem::exists(place / kResults)) rows_of(place / kResults);
  }
}

TEST(Failure, AStoppedRankIsNoticed) {
  const Workplace place;
  place.write("e.yaml", endless());
  Job job(place, {"run", "e.yaml", "--set", "train.stall_limit=2s"}, {4});
  wait_for_rows(job, place / kResults);
  ::kill(job.rank(2), SIGSTOP);
  const Outcome outcome = job.wait();
  // Ranks do not meet between iterations, so several may be out of patience at the same moment; each names its wait.
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_THAT(outcome.errors(), testing::Not(testing::IsEmpty()));
  for (const std::string& error : outcome.errors()) {
    EXPECT_THAT(error, testing::AllOf(testing::HasSubstr("stalled"), testing::HasSubstr("train.stall_limit 2.00 s")));
  }
  EXPECT_THAT(place.left_over(), testing::IsEmpty());
  EXPECT_GT(rows_of(place / kResults), 0U);
  EXPECT_EQ(storage::File::open(place / kResults).text("status"), "failed");
}

// A search may take longer than the limit, which is no stall; a rank that is stopped meanwhile is seen by the one
// before it.
TEST(Failure, AStoppedRankIsNoticedWhileRank0Plans) {
  for (const int stopped : {2, 0}) {
    const Workplace place;  // what the job before said is not there
    place.write("e.yaml",
                "name: tiny\nmodel: {name: resnet50}\ndata: {batch: 4}\ncluster: v100x4\n"
                "plan: {partitioner: {name: exact, time_limit: 100 s}}\n"
                "train: {iterations: 1, stall_limit: 2 s, evaluate_every: off}\n");
    Job job(place, {"run", "e.yaml"}, {4});
    job.until("it read the experiment", [&] { return text_of(place / ".err").find("cluster '") != std::string::npos; });
    std::this_thread::sleep_for(std::chrono::seconds(stopped == 0 ? 0 : 3));  // longer than the limit
    ::kill(job.rank(stopped), SIGSTOP);
    const Outcome outcome = job.wait();
    EXPECT_EQ(outcome.code, 4) << outcome.err;
    ASSERT_THAT(outcome.errors(), testing::SizeIs(1)) << outcome.err;
    EXPECT_THAT(outcome.errors().front(), testing::AllOf(testing::HasSubstr("rank " + std::to_string(stopped) + " on "),
                                                         testing::HasSubstr("has given no sign of life for"),
                                                         testing::HasSubstr("train.stall_limit")));
    EXPECT_THAT(place.left_over(), testing::IsEmpty());
  }
}

TEST(Failure, ASecondRunOnTheSameResultsNamesTheFirst) {
  const Workplace place;
  place.write("e.yaml", endless());
  Job job(place, {"run", "e.yaml"}, {4});
  wait_for_file(job, place / kResults);
  const std::string holder = "process " + std::to_string(job.rank(0));
  for (int rank = 0; rank < 4; ++rank) ::kill(job.rank(rank), SIGSTOP);  // alive, and out of the second run's way
  for (const bool overwrite : {false, true}) {
    std::vector<std::string> words{"run", "e.yaml", "--set", "plan.stages=1", "--set", "plan.pipelines=1"};
    if (overwrite) words.emplace_back("--overwrite");
    const Workplace other;  // a job of its own, on the file of the first
    words[1] = (place / "e.yaml").string();
    words.insert(words.end(), {"--output", (place / "results").string()});
    expect_one_error(other, other.run(words), 2, {holder, "results/tiny.h5"});
  }
}

// Of the tests themselves: a launcher that never waits for its one rank.
TEST(Failure, ALauncherThatStaysBehindDoesNotHideWhatItsRanksEndedWith) {
  const Workplace place;
  place.write("mpirun", "#!/bin/sh\nsh -c 'exit 4' &\nexec sleep 1000\n");
  std::filesystem::permissions(place / "mpirun", std::filesystem::perms::owner_all);
  JobOptions options{1};
  options.environment = {{"PATH", (place / "").string() + ":" + std::getenv("PATH")}};
  EXPECT_EQ(place.run({"run", "e.yaml"}, options).code, 4);
  EXPECT_TRUE(place.left_over().empty());
}

TEST(Failure, AnErrorOfOneRankAloneEndsAllWithItsCode) {
  const Workplace place;
  place.write("e.yaml", tiny());
  for (const std::string rank : {"0", "2"}) {
    JobOptions options{4};
    options.script = place.write("one.sh", "[ \"$OMPI_COMM_WORLD_RANK\" != " + rank +
                                               " ] || export OMP_NUM_THREADS=many\n"
                                               "exec \"$@\"\n");
    const Outcome outcome = place.run({"run", "e.yaml"}, options);
    expect_one_error(place, outcome, 2, {"OMP_NUM_THREADS is 'many'"});
    EXPECT_EQ(outcome.err.find("rank 2 on ") != std::string::npos, rank == "2") << outcome.err;
  }
}

TEST(Failure, ARankWithoutMemoryEndsAll) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve more address space than the limit of this test";
#endif
  const Workplace place;
  place.write("e.yaml",
              "name: large\nmodel: {name: mlp, options: {inputs: 16, hidden: [6000, 6000], classes: 4}}\n"
              "data: {batch: 3}\nplan: {partitioner: data_parallel}\ntrain: {iterations: 1}\n");
  JobOptions options{3};
  options.script = place.write("one.sh", "[ \"$OMPI_COMM_WORLD_RANK\" != 2 ] || ulimit -v 500000\nexec \"$@\"\n");
  expect_one_error(place, place.run({"run", "e.yaml"}, options), 4, {"rank 2 on ", "out of memory"});
}

TEST(Failure, ALossThatIsNotFiniteIsSkippedByAllAndThenEndsTheRun) {
  const Workplace place;
  place.write("e.yaml", tiny("plan: {pipelines: 2, stages: 2}\n"
                             "train: {iterations: 50, maximum_skips: 3, optimizer: {kind: sgd, lr: 1e30}}\n"));
  const Outcome outcome = place.run({"run", "e.yaml"}, {4});
  expect_one_error(place, outcome, 4, {"3 iterations in a row", "train.optimizer.lr"});
  const storage::File file = storage::File::open(place / kResults);
  EXPECT_EQ(file.text("status"), "failed");
  const std::vector<std::int64_t> skipped = file.table("iterations").column_integers("skipped");
  ASSERT_GE(skipped.size(), 4U);
  EXPECT_EQ(skipped.front(), 0);
  EXPECT_THAT(std::vector(skipped.end() - 3, skipped.end()), Each(1));
}

/// `results/` is a file system of 4 MiB; skipped where the test may not mount one.
class FullDisk : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(place_ / "results");
    if (::mount("tmpfs", (place_ / "results").c_str(), "tmpfs", 0, "size=4m") != 0) {
      GTEST_SKIP() << "a small tmpfs cannot be mounted: " << std::strerror(errno);
    }
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) ::umount2((place_ / "results").c_str(), MNT_DETACH);
  }
  void fill() const {
    std::ofstream out(place_ / "results/filler", std::ios::binary);
    const std::vector<char> page(4096, 'x');
    while (out.write(page.data(), 4096) && out.flush()) {
    }
  }

  Workplace place_;
  bool mounted_ = false;
};

TEST_F(FullDisk, ResultsThatDoNotFitAreRefusedBeforeTraining) {
  place_.write("e.yaml", endless());
  const Outcome outcome = place_.run({"run", "e.yaml"}, {4});
  expect_one_error(place_, outcome, 4, {kResults, "No space left on device"});
  EXPECT_THAT(outcome.errors(), Each(testing::Not(testing::HasSubstr("errno")))) << "what the library knows, in short";
  EXPECT_FALSE(std::filesystem::exists(place_ / kResults));
}

TEST_F(FullDisk, RowsSurviveADiskThatFillsUpDuringTheRun) {
  place_.write("e.yaml", endless());
  Job job(place_, {"run", "e.yaml", "--set", "train.iterations=1000"}, {4});
  const pid_t writer = job.rank(0);
  wait_for_file(job, place_ / kResults);
  ::kill(writer, SIGSTOP);  // so that the disk is full before the run ends, however fast the machine is
  fill();
  ::kill(writer, SIGCONT);
  expect_one_error(place_, job.wait(), 4, {"No space left on device"});  // the tables of the end find no room
  EXPECT_EQ(rows_of(place_ / kResults), 1000U);
}

}  // namespace
}  // namespace millrace::cli
