// The results file as its readers find it: while it is written, after a kill, and at the end.
#include "record/results_file.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.h"
#include "record/columns.h"
#include "tests/storage/expect_error.h"
#include "tests/storage/temporary_folder.h"

namespace millrace::record {
namespace {

using storage::expect_error;
using storage::TemporaryFolder;
using ::testing::Contains;
using ::testing::ElementsAre;

RunContext context() {
  RunContext c;
  c.root = {{"name", std::string("tiny")}, {"seed", std::int64_t{7}}, {"ratio", 0.5}};
  c.config = "name: tiny\n";
  c.plan = "schedule: 1f1b\n";
  c.cluster = "name: local\n";
  c.iterations = 3;
  c.evaluations = 1;
  c.batch = 8;
  return c;
}

IterationRow iteration(std::int64_t number) {
  IterationRow row;
  row.iteration = number;
  row.epoch = 1;
  row.samples = 8 * number;
  row.loss = 2.0 / static_cast<double>(number);
  row.gradient_norm = 0.25 * static_cast<double>(number);
  row.learning_rate = 0.1;
  row.time = Seconds(0.5);
  row.exposed_communication = Seconds(0.125);
  row.skipped = number == 2;
  return row;
}

class ResultsFileTest : public ::testing::Test {
 protected:
  std::filesystem::path path() const { return folder_ / "r.h5"; }

  // The file as a kill at this moment would leave it.
  storage::File as_left_by_a_kill() const {
    std::filesystem::copy_file(path(), folder_ / "killed.h5", std::filesystem::copy_options::overwrite_existing);
    return storage::File::open(folder_ / "killed.h5");
  }

  TemporaryFolder folder_;
};

TEST_F(ResultsFileTest, HoldsTheContextBeforeTheFirstIteration) {
  ResultsFile results(path(), context(), {});
  const storage::File file = as_left_by_a_kill();
  EXPECT_EQ(file.text("status"), "running");
  EXPECT_EQ(file.text("name"), "tiny");
  EXPECT_EQ(file.integer("seed"), 7);
  EXPECT_EQ(file.real("ratio"), 0.5);
  EXPECT_EQ(file.text_dataset("config"), "name: tiny\n");
  EXPECT_EQ(file.text_dataset("plan"), "schedule: 1f1b\n");
  EXPECT_EQ(file.text_dataset("cluster"), "name: local\n");
  EXPECT_EQ(file.table("iterations").rows(), 0U);
  EXPECT_EQ(file.table("iterations").capacity(), 3U) << "full size from the start: a kill cannot take it";
  EXPECT_EQ(file.table("evaluation").capacity(), 1U);
  results.close("complete");
}

TEST_F(ResultsFileTest, RowsAreWhatWasTold) {
  ResultsFile results(path(), context(), {});
  for (std::int64_t i = 1; i <= 3; ++i) results.add(iteration(i), i == 3 ? 4 : 8);
  results.add(EvaluationRow{3, 0.75, 0.5});
  results.close("complete");

  const storage::File file = storage::File::open(path());
  EXPECT_EQ(file.text("status"), "complete");
  const storage::Table rows = file.table("iterations");
  EXPECT_EQ(rows.integer("rows"), 3);
  EXPECT_THAT(rows.column_integers("iteration"), ElementsAre(1, 2, 3));
  EXPECT_THAT(rows.column_integers("epoch"), ElementsAre(1, 1, 1));
  EXPECT_THAT(rows.column_integers("samples"), ElementsAre(8, 16, 24));
  EXPECT_THAT(rows.column_reals("loss"), ElementsAre(2.0, 1.0, 2.0 / 3));
  EXPECT_THAT(rows.column_reals("gradient_norm"), ElementsAre(0.25, 0.5, 0.75));
  EXPECT_THAT(rows.column_reals("learning_rate"), ElementsAre(0.1, 0.1, 0.1));
  EXPECT_THAT(rows.column_reals("time_s"), ElementsAre(0.5, 0.5, 0.5));
  EXPECT_THAT(rows.column_reals("throughput"), ElementsAre(16.0, 16.0, 8.0));
  EXPECT_THAT(rows.column_reals("exposed_communication_s"), ElementsAre(0.125, 0.125, 0.125));
  EXPECT_THAT(rows.column_integers("skipped"), ElementsAre(0, 1, 0));
  const storage::Table evaluations = file.table("evaluation");
  EXPECT_THAT(evaluations.column_integers("iteration"), ElementsAre(3));
  EXPECT_THAT(evaluations.column_reals("loss"), ElementsAre(0.75));
  EXPECT_THAT(evaluations.column_reals("accuracy"), ElementsAre(0.5));
}

TEST_F(ResultsFileTest, ColumnsCarryUnitsAndDatasetsADescription) {
  ResultsFile results(path(), context(), {});
  results.close("complete");
  const storage::File file = storage::File::open(path());
  const storage::Table rows = file.table("iterations");
  ASSERT_EQ(rows.columns().size(), iteration_columns().size());
  for (std::size_t i = 0; i < iteration_columns().size(); ++i) {
    EXPECT_EQ(rows.columns()[i].name, iteration_columns()[i].name);
    EXPECT_EQ(rows.columns()[i].type, iteration_columns()[i].type);
  }
  EXPECT_TRUE(rows.has("unit"));
  EXPECT_TRUE(rows.has("description"));
}

TEST_F(ResultsFileTest, RowsReachTheDiskThoughNothingFollowsThem) {
  ResultsFile results(path(), context(), {});
  results.add(iteration(1), 8);
  results.add(EvaluationRow{1, 0.75, 0.5});
  // A long iteration follows, or an evaluation of minutes. The limit is for machines that stand still.
  std::uint64_t rows = 0, evaluations = 0;
  for (int naps = 0; naps < 3000 && (rows == 0 || evaluations == 0); ++naps) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const storage::File file = as_left_by_a_kill();
    rows = file.table("iterations").rows();
    evaluations = file.table("evaluation").rows();
  }
  EXPECT_EQ(rows, 1U);
  EXPECT_EQ(evaluations, 1U);
  EXPECT_EQ(as_left_by_a_kill().text("status"), "running");
  results.close("failed");
  EXPECT_EQ(storage::File::open(path()).text("status"), "failed");
}

TEST_F(ResultsFileTest, AnAbandonedFileSaysRunningAndKeepsItsFlushedRows) {
  {
    ResultsFile results(path(), context(), {});
    results.add(iteration(1), 8);
  }
  EXPECT_EQ(storage::File::open(path()).text("status"), "running");
}

TEST_F(ResultsFileTest, RanksInstructionsAndGroups) {
  ResultsFile results(path(), context(), {});
  RankRow rank;
  rank.rank = 1;
  rank.host = "node7";
  rank.device = 1;
  rank.stages = "0";
  rank.threads = 2;
  rank.report.weights_bytes = 10;
  rank.report.gradients_bytes = 20;
  rank.report.activations_bytes = 5'000'000'000;  // beyond 32 bits
  rank.report.sent_bytes = 6'000'000'000;
  rank.report.busy = Seconds(1.5);
  results.add(std::vector<RankRow>{RankRow{}, rank});
  const std::vector<TimelineRow> timeline{{0, 0, {InstructionKind::forward, 0, 2}, Seconds(0.5), Seconds(0.75)},
                                          {0, 1, {InstructionKind::reduce_norm}, Seconds(0.75), Seconds(1)}};
  results.add(timeline, 3, {0.2});
  results.add_group("summary", {{"throughput", 16.0}, {"kind", std::string("measured")}});
  results.close("complete");

  const storage::File file = storage::File::open(path());
  const storage::Table ranks = file.table("ranks");
  EXPECT_THAT(ranks.column_integers("rank"), ElementsAre(0, 1));
  EXPECT_THAT(ranks.column_texts("host"), ElementsAre("", "node7"));
  EXPECT_THAT(ranks.column_integers("peak_bytes"), ElementsAre(0, 5'000'000'030));
  EXPECT_THAT(ranks.column_integers("sent_bytes"), ElementsAre(0, 6'000'000'000));
  EXPECT_THAT(ranks.column_reals("busy_s"), ElementsAre(0, 1.5));
  const storage::Table instructions = file.table("instructions");
  EXPECT_THAT(instructions.column_texts("kind"), ElementsAre("forward", "reduce_norm"));
  EXPECT_THAT(instructions.column_integers("iteration"), ElementsAre(3, 3));
  EXPECT_THAT(instructions.column_integers("micro_batch"), ElementsAre(2, -1));
  EXPECT_THAT(instructions.column_reals("end_s"), ElementsAre(0.75, 1));
  EXPECT_THAT(instructions.column_reals("predicted_s"), ElementsAre(0.2, -1)) << "-1: not predicted";
  EXPECT_THAT(file.names(), Contains("summary"));
  EXPECT_EQ(file.group("summary").real("throughput"), 16.0);
  EXPECT_EQ(file.group("summary").text("kind"), "measured");
}

TEST_F(ResultsFileTest, IsMadeExclusively) {
  ResultsFile first(path(), context(), {});
  // The holder is named, and no option takes a file from a living writer on this host.
  for (const ResultsOptions& options : {ResultsOptions{}, ResultsOptions{true, false}, ResultsOptions{true, true}}) {
    expect_error<InvalidInput>([&] { ResultsFile second(path(), context(), options); },
                               {"r.h5", std::to_string(::getpid())});
  }
  first.add(iteration(1), 8);
  first.close("complete");
}

TEST_F(ResultsFileTest, FinishedRunIsReplacedOnlyWhenAsked) {
  const auto run = [&](const ResultsOptions& options, std::int64_t rows) {
    ResultsFile results(path(), context(), options);
    for (std::int64_t i = 1; i <= rows; ++i) results.add(iteration(i), 8);
    results.close("complete");
  };
  run({}, 2);
  expect_error<InvalidInput>([&] { run({}, 1); }, {"r.h5", "exists"});
  EXPECT_EQ(storage::File::open(path()).table("iterations").rows(), 2U) << "the refused run touched the file";
  run({.overwrite = true}, 1);
  EXPECT_EQ(storage::File::open(path()).table("iterations").rows(), 1U);
}

TEST_F(ResultsFileTest, OverwritingSparesWhatHoldsNoResults) {
  std::ofstream(path()) << "notes";
  expect_error<InvalidInput>([&] { ResultsFile(path(), context(), {.overwrite = true}); }, {"r.h5", "no results"});
  EXPECT_EQ(std::filesystem::file_size(path()), 5U);
}

}  // namespace
}  // namespace millrace::record
