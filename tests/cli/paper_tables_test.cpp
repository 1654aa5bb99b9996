// The tables of experiments/paper at their small size: every cell comes to be, and what arithmetic or others' own code
// gives is reached to its printed digits. And what sweeps of several files and lists of workloads promise.
#include <algorithm>

#include "tests/cli/expect.h"

namespace millrace::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Verdicts {
  int reached = 0, not_reached = 0, unpublished = 0;
};

// Runs a table of experiments/paper at its small size and counts the verdicts of what it has results for.
Verdicts small_table(const std::string& name, const std::string& time_limit = "60 s") {
  const Workplace place;
  expect_done(place, place.run({"sweep", MILLRACE_SOURCE_DIR "/experiments/paper/" + name + ".yaml", "--small",
                                "--time-limit", time_limit, "--quiet"}));
  const Outcome report = place.run({"report", "results/" + name + ".h5", "--paper", "--table", "md"});
  expect_done(place, report);
  Verdicts verdicts;
  for (std::size_t begin = 0; begin < report.out.size();) {
    const std::size_t end = std::min(report.out.find('\n', begin), report.out.size());
    const std::string line = report.out.substr(begin, end - begin);
    verdicts.reached += line.find("| reached") != std::string::npos ? 1 : 0;
    verdicts.not_reached += line.find("| not reached") != std::string::npos ? 1 : 0;
    verdicts.unpublished += line.find("| nothing published") != std::string::npos ? 1 : 0;
    begin = end + 1;
  }
  return verdicts;
}

TEST(PaperTables, ScalingOfResnet50IsAboveNinetyPercentOnSixteenDevices) {
  const Verdicts table = small_table("hippie_scaling");
  EXPECT_EQ(table.reached, 2);      // efficiency and speed-up on 16
  EXPECT_EQ(table.unpublished, 3);  // efficiencies on fewer
}

TEST(PaperTables, MemoryEfficiencyIsJudgedAgainstFourMethods) {
  const Verdicts table = small_table("hippie_memory");
  EXPECT_EQ(table.reached + table.not_reached, 12);  // throughput, memory and their ratio
}

TEST(PaperTables, PartitionsAreJudged) {
  const Verdicts memory = small_table("memory_efficiency");
  EXPECT_EQ(memory.reached + memory.not_reached, 3);  // throughput, memory and their ratio
  const Verdicts cuts = small_table("pipeline_cuts", "2 s");
  EXPECT_EQ(cuts.reached + cuts.not_reached, 6);
  EXPECT_EQ(cuts.unpublished, 1);
}

// 3.77 times and 94 % on four, and 90 % of the sum of four unequal speeds.
TEST(PaperTables, OneAnnotationMakesResnet50DataParallelOnFourEmulatedDevices) {
  EXPECT_EQ(small_table("propagation_emulated").reached, 3);
}

TEST(PaperTables, UnequalDevicesReachTheIdealGain) { EXPECT_EQ(small_table("device_aware").reached, 2); }

TEST(PaperTables, SchedulesHaveTheMakespansOfTheirClosedForms) {
  const Verdicts table = small_table("schedules");
  EXPECT_EQ(table.reached, 11);
  EXPECT_EQ(table.not_reached, 0);
}

TEST(PaperTables, MakespansOfProfiledStagesAreHitToTheMicrosecond) {
  const Verdicts table = small_table("makespans");
  EXPECT_EQ(table.reached, 6);
  EXPECT_EQ(table.not_reached, 0);
}

TEST(PaperTables, PredictionsAndPropagation) {
  EXPECT_EQ(small_table("simulator").unpublished, 1);
  EXPECT_EQ(small_table("propagation").unpublished, 2);
}

// Measured on a quiet machine only: here its cells are read and checked.
TEST(PaperTables, TrainingHasACellForEachFigureOfThePeer) {
  const Workplace place;
  const Outcome listed =
      place.run({"sweep", MILLRACE_SOURCE_DIR "/experiments/paper/cpu_training.yaml", "--dry-run", "--format", "json"});
  expect_done(place, listed);
  EXPECT_EQ(document(listed).at("cells").size(), 20U);
}

constexpr const char* kTwo =
    "millrace_graph: 1\nname: two\noperators:\n"
    "  - {name: a, kind: cost, forward: 2 ms, output: 1 MiB}\n"
    "  - {name: b, kind: cost, inputs: [a], forward: 3 ms}\n";

constexpr const char* kList =
    "bench: planner\nsmall: {workload: mine}\nsource: their code\nrows:\n"
    "  - workload: mine\n    model: {file: two.yaml}\n    data: {batch: 4}\n"
    "    cluster: {flat: {devices: 2, bandwidth: 1 GB/s}}\n"
    "    partitioners: [dp, time_equal]\n    published: {dp: 1000}\n"
    "  - workload: gone\n    model: {file: gone.json}\n    partitioners: [dp]\n";

constexpr const char* kSweep =
    "sweep: one\nbase:\n  model: {file: two.yaml}\n  data: {batch: 4}\n"
    "  cluster: {flat: {devices: 2, bandwidth: 1 GB/s}}\nmatrix: {plan.micro_batches: [1, 2, 4]}\n"
    "small: {plan.micro_batches: [1, 4]}\n";

TEST(PaperTables, OneFileMayNameSeveralSweepsAndLists) {
  const Workplace place;
  place.write("two.yaml", kTwo);
  place.write("list.yaml", kList);
  place.write("one.yaml", kSweep);
  place.write("all.yaml", "sweeps: [one.yaml, list.yaml]\n");
  const Outcome outcome = place.run({"sweep", "all.yaml"});
  expect_done(place, outcome);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("sweep one: 3 done"), HasSubstr("sweep list: 2 done"),
                                 HasSubstr("excluded: 1 combination: no such file 'gone.json'")));
  const Outcome paper = place.run({"report", "results/list.h5", "--paper", "--table", "csv"});
  EXPECT_THAT(paper.out, AllOf(HasSubstr("\"mine, dp\""), HasSubstr("their code"), Not(HasSubstr("mine, time_equal"))));
  const Outcome small = place.run({"sweep", "all.yaml", "--small", "--output", "small", "--format", "json"});
  expect_done(place, small);
  const json both = document(small);
  EXPECT_EQ(both.at(0).at("cells").size(), 2U);
  EXPECT_EQ(both.at(1).at("cells").size(), 2U);
  const Outcome shared = place.run({"sweep", "all.yaml", "--output", "shared", "--quiet"}, {.ranks = 2});
  expect_done(place, shared);
  EXPECT_THAT(shared.out, HasSubstr("sweep list: 2 done"));
}

TEST(PaperTables, EveryFileIsCheckedBeforeAnyCellStarts) {
  const Workplace place;
  place.write("two.yaml", kTwo);
  place.write("one.yaml", kSweep);
  place.write("bad.yaml", std::string(kSweep) + "exclude: [{plan.micro_batches: 9}]\n");
  place.write("all.yaml", "sweeps: [one.yaml, bad.yaml]\n");
  expect_one_error(place, place.run({"sweep", "all.yaml"}), 2, {"bad.yaml", "no combination of the matrix is left"});
  EXPECT_FALSE(std::filesystem::exists(place / "results"));
  place.write("all.yaml", "sweeps: [one.yaml, one.yaml]\n");
  expect_one_error(place, place.run({"sweep", "all.yaml"}), 2, {"one.h5"});
  place.write("one.yaml", std::string(kSweep).replace(std::string(kSweep).find("[1, 4]"), 6, "[3]"));
  expect_one_error(place, place.run({"sweep", "one.yaml", "--small", "--output", "o"}), 2, {"small: no cell has all"});
}

}  // namespace
}  // namespace millrace::cli
