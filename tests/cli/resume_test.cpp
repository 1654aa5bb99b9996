// Runs that are stopped, killed and damaged go on from their last complete checkpoint as if nothing had happened.
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <numeric>
#include <thread>

#include <sys/mount.h>

#include "storage/file.h"
#include "storage/step_folders.h"
#include "tests/cli/expect.h"

namespace millrace::cli {
namespace {

using testing::HasSubstr;

constexpr const char* kResults = "results/tiny.h5";
constexpr const char* kCheckpoints = "results/tiny.checkpoints";

std::vector<std::int64_t> steps(const Workplace& place) { return storage::StepFolders(place / kCheckpoints).steps(); }

std::vector<double> losses(const Workplace& place) {
  const storage::File file = storage::File::open(place / kResults);
  const storage::Table table = file.table("iterations");
  const std::vector<std::int64_t> numbers = table.column_integers("iteration");
  std::vector<std::int64_t> expected(numbers.size());
  std::iota(expected.begin(), expected.end(), 1);
  EXPECT_EQ(numbers, expected) << "a row is missing or there twice";
  return table.column_reals("loss");
}

std::string iterations(std::int64_t count) { return "train.iterations=" + std::to_string(count); }

// The losses of a run of that many iterations that nothing happened to.
std::vector<double> undisturbed(std::int64_t count) {
  const Workplace place;
  place.write("e.yaml", endless());
  expect_done(place, place.run({"run", "e.yaml", "--set", iterations(count)}, {4}));
  return losses(place);
}

void wait_for_rows(const Job& job, const Workplace& place) {
  job.until("it made its results", [&] { return std::filesystem::exists(place / kResults); });
  job.until("it wrote rows", [&] { return storage::File::open(place / kResults).table("iterations").rows() > 0; });
}

TEST(Resume, ASignalStopsARunThatGoesOnBitForBit) {
  for (const auto& [number, rank, code] : {std::tuple{SIGTERM, 2, 143}, std::tuple{SIGINT, 0, 130}}) {
    const Workplace place;
    place.write("e.yaml", endless());
    Job job(place, {"run", "e.yaml"}, {4});
    wait_for_rows(job, place);
    ::kill(job.rank(rank), number);
    const Outcome stopped = job.wait();
    EXPECT_EQ(stopped.code, code) << stopped.err;
    EXPECT_THAT(stopped.errors(), testing::IsEmpty());
    EXPECT_THAT(stopped.out, HasSubstr("--resume goes on"));
    EXPECT_THAT(place.left_over(), testing::IsEmpty());
    EXPECT_EQ(storage::File::open(place / kResults).text("status"), "interrupted");
    ASSERT_EQ(steps(place).size(), 1U);
    const std::int64_t step = steps(place).front();
    EXPECT_EQ(losses(place).size(), static_cast<std::size_t>(step));

    const Outcome rest = place.run({"run", "e.yaml", "--resume", "--set", iterations(step + 20)}, {4});
    expect_done(place, rest);
    EXPECT_THAT(rest.err, HasSubstr("going on from"));
    EXPECT_EQ(losses(place), undisturbed(step + 20));
    EXPECT_EQ(storage::File::open(place / kResults).text("status"), "complete");
  }
}

TEST(Resume, ACheckpointOnRequestDoesNotStopTheRun) {
  const Workplace place;
  place.write("e.yaml", endless());
  Job job(place, {"run", "e.yaml"}, {4});
  wait_for_rows(job, place);
  ::kill(job.rank(1), SIGUSR1);
  job.until("it made a checkpoint", [&] { return !steps(place).empty(); });
  const std::int64_t first = steps(place).front();
  ::kill(job.rank(3), SIGUSR1);  // so it runs still
  job.until("it made another", [&] { return steps(place).front() > first; });
  ::kill(job.rank(2), SIGKILL);
  EXPECT_NE(job.wait().code, 0);
  const std::int64_t step = steps(place).front();
  expect_done(place, place.run({"run", "e.yaml", "--resume", "--set", iterations(step + 5)}, {4}));
  EXPECT_EQ(losses(place), undisturbed(step + 5));
}

TEST(Resume, AKillAtAnyMomentLeavesTheLastCompleteCheckpoint) {
  const Workplace place;
  place.write("e.yaml", endless());
  std::int64_t newest = 0;
  for (const int after_ms : {3, 70, 150, 230}) {
    Job job(place, {"run", "e.yaml", "--resume", "--set", "train.checkpoint={every: 1}"}, {4});
    const pid_t victim = job.rank(after_ms % 4);
    job.until("it made a checkpoint", [&] { return !steps(place).empty() && steps(place).front() > newest; });
    std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));
    ::kill(victim, SIGKILL);
    EXPECT_NE(job.wait().code, 0);
    EXPECT_THAT(place.left_over(), testing::IsEmpty());
    newest = steps(place).front();
  }
  const Outcome rest = place.run({"run", "e.yaml", "--resume", "--set", iterations(newest + 5)}, {4});
  expect_done(place, rest);
  EXPECT_THAT(rest.err, testing::Not(HasSubstr("damaged")));
  EXPECT_EQ(losses(place), undisturbed(newest + 5));
}

TEST(Resume, ADamagedCheckpointIsNamedAndPassedOver) {
  const Workplace place;
  place.write("e.yaml", endless());
  expect_done(place,
              place.run({"run", "e.yaml", "--set", iterations(30), "--set", "train.checkpoint={every: 10}"}, {4}));
  ASSERT_THAT(steps(place), testing::ElementsAre(30, 20));  // two are kept if nothing is said
  std::filesystem::resize_file(place / (std::string(kCheckpoints) + "/step-00000030/rank-00001.h5"), 1000);
  const Outcome rest = place.run({"run", "e.yaml", "--resume", "--set", iterations(33)}, {4});
  expect_done(place, rest);
  EXPECT_THAT(rest.err, HasSubstr("step-00000030/rank-00001.h5: is damaged: 1000 bytes"));
  EXPECT_THAT(rest.err, HasSubstr("step-00000020"));
  EXPECT_EQ(losses(place), undisturbed(33));
}

TEST(Resume, AnotherGridGoesOnToo) {
  const Workplace place;
  place.write("e.yaml", endless());
  expect_done(place,
              place.run({"run", "e.yaml", "--set", iterations(10), "--set", "train.checkpoint={every: 10}"}, {4}));
  expect_done(place,
              place.run({"run", "e.yaml", "--resume", "--set", iterations(20), "--set", "plan.pipelines=1"}, {2}));
  const std::vector<double> expected = undisturbed(20), found = losses(place);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << i;
}

TEST(Resume, WhatDoesNotBelongTogetherIsRefused) {
  const Workplace place;
  place.write("e.yaml", endless());
  const std::vector<std::string> run{"run", "e.yaml", "--set", iterations(4), "--set", "train.checkpoint={every: 4}"};
  expect_done(place, place.run(run, {4}));
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> words = run;
    words.insert(words.end(), more.begin(), more.end());
    return place.run(words, {4});
  };
  expect_one_error(place, with({"--resume", "--set", "seed=2"}), 2, {"seed 1", "seed 2", "--resume"});
  expect_one_error(place, with({"--resume", "--set", "train.optimizer.kind=adam"}), 2, {"made with sgd", "has adam"});
  expect_one_error(
      place,
      with({"--resume", "--set", "model.options.hidden=[8]", "--set", "plan.stages=1", "--set", "plan.pipelines=4"}), 2,
      {"is of another model"});
  std::filesystem::remove(place / kResults);
  expect_one_error(place, place.run(run, {4}), 2, {kCheckpoints, "--resume", "--overwrite"});
  expect_done(place, with({"--overwrite", "--set", "train.checkpoint=off"}));
  EXPECT_THAT(steps(place), testing::IsEmpty());
}

TEST(Resume, ACompleteRunStaysAsItIs) {
  const Workplace place;
  place.write("e.yaml", endless());
  for (const char* checkpoints : {"off", "{every: 2}"}) {
    const std::vector<std::string> run{"run",         "e.yaml", "--set",
                                       iterations(4), "--set",  std::string("train.checkpoint=") + checkpoints};
    const auto with = [&](const char* flag) {
      std::vector<std::string> words = run;
      words.emplace_back(flag);
      return place.run(words, {4});
    };
    expect_done(place, with("--overwrite"));
    const std::string before = text_of(place / kResults);
    const Outcome again = with("--resume");
    expect_done(place, again);
    EXPECT_THAT(again.err, testing::HasSubstr("is of a complete run: nothing is left to do"));
    EXPECT_EQ(text_of(place / kResults), before);
  }
}

TEST(Resume, WithFewerIterationsFewerAreAwaitedAndThePlansMakerIsKept) {
  const Workplace place;
  place.write("e.yaml", endless());
  const std::vector<std::string> run{"run", "e.yaml", "--set", "train.checkpoint={every: 2}", "--set"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> words = run;
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = place.run(words, {4});
    expect_done(place, outcome);
    return outcome;
  };
  EXPECT_THAT(with({iterations(4)}).out, HasSubstr("1f1b by dp"));
  EXPECT_THAT(with({iterations(6), "--resume"}).out, HasSubstr("1f1b by dp"));
  Job job(place, {"run", "e.yaml", "--overwrite", "--set", "train.checkpoint={every: 2}"}, {4});
  job.until("it has a checkpoint", [&] { return !steps(place).empty(); });
  ::kill(job.rank(0), SIGTERM);
  job.wait();
  const std::int64_t step = steps(place).back();
  with({iterations(step + 6), "--resume"});
  const Outcome watched = place.run({"watch", kResults});
  EXPECT_THAT(watched.out, HasSubstr("complete: " + std::to_string(step + 6) + " of " + std::to_string(step + 6)));
}

// Its results say that it was stopped, so it is not left as it is: what the weights reach on the test split is told.
TEST(Resume, AStoppedRunThatIsPastItsEndIsEvaluated) {
  const Workplace place;
  place.write("e.yaml", endless());
  Job job(place, {"run", "e.yaml"}, {4});
  wait_for_rows(job, place);
  ::kill(job.rank(0), SIGTERM);
  EXPECT_THAT(job.wait().out, testing::Not(HasSubstr("accuracy")));
  EXPECT_FALSE(storage::File::open(place / kResults).group("summary").has("test_accuracy"));
  const Outcome rest = place.run({"run", "e.yaml", "--resume", "--set", iterations(1)}, {4});
  expect_done(place, rest);
  EXPECT_THAT(rest.out, HasSubstr("test accuracy "));
  EXPECT_GT(storage::File::open(place / kResults).group("summary").real("test_loss"), 0);
}

/// `results/` is a file system of 4 MiB; skipped where the test may not mount one.
class ResumeFullDisk : public testing::Test {
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

  Workplace place_;
  bool mounted_ = false;
};

TEST_F(ResumeFullDisk, ACheckpointWithoutRoomEndsTheRunAndCostsNoEarlierOne) {
  // 1.2 MB of parameters: three checkpoints find no room.
  place_.write("e.yaml",
               "name: tiny\nmodel: {name: mlp, options: {inputs: 16, hidden: [512, 512], classes: 4}}\n"
               "data: {batch: 32}\nplan: {pipelines: 2, stages: 1}\n"
               "train: {iterations: 40, checkpoint: {every: 10, keep: 4}}\n");
  const Outcome outcome = place_.run({"run", "e.yaml"}, {2});
  expect_one_error(place_, outcome, 4, {"step-00000040.partial", "No space left on device"});
  EXPECT_THAT(steps(place_), testing::ElementsAre(30, 20, 10));
  EXPECT_EQ(losses(place_).size(), 40U);
  for (const char* old : {"step-00000010", "step-00000020"})
    std::filesystem::remove_all(place_ / (std::string(kCheckpoints) + "/" + old));
  expect_done(place_, place_.run({"run", "e.yaml", "--resume"}, {2}));
  EXPECT_THAT(steps(place_), testing::ElementsAre(40, 30));
}

}  // namespace
}  // namespace millrace::cli
