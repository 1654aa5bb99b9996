// `millrace sweep` as users run it: what is kept of each cell, whatever ends the sweep, a cell or its worker.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "tests/cli/expect.h"

namespace millrace::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr const char* kGraph =
    "millrace_graph: 1\nname: three\noperators:\n"
    "  - {name: a, kind: cost, forward: 2 ms, output: 1 MiB, parameters: 4 MiB}\n"
    "  - {name: b, kind: cost, inputs: [a], forward: 3 ms, output: 1 MiB, parameters: 2 MiB}\n"
    "  - {name: c, kind: cost, inputs: [b], forward: 1 ms, parameters: 1 MiB}\n";

const std::string kBase =
    "base:\n"
    "  model: {file: g.yaml}\n"
    "  data: {batch: 8}\n"
    "  cluster: {flat: {devices: 2, bandwidth: 1 GB/s}}\n";

// 12 cells of some milliseconds each.
std::string twelve(const std::string& more = "") {
  return "sweep: s\n" + kBase +
         "matrix:\n  plan.partitioner: [dp, layer_equal, parameter_equal]\n  data.batch: [8, 16]\n"
         "  plan.micro_batches: [1, 2]\n" +
         more;
}

// Cells that take about as long as their search may.
std::string slow_cells(int count, const std::string& more = "") {
  std::string seeds;
  for (int seed = 1; seed <= count; ++seed) seeds += (seed > 1 ? ", " : "") + std::to_string(seed);
  return "sweep: s\nbase:\n  model: {name: synthetic, options: {shape: random_dag, operators: 3000}}\n"
         "  data: {batch: 64}\n  cluster: {flat: {devices: 4, bandwidth: 1 GB/s}}\n"
         "  plan: {partitioner: {name: genetic, time_limit: 400 ms}, micro_batches: 4}\n"
         "matrix: {seed: [" +
         seeds + "]}\n" + more;
}

std::vector<json> lines_of(const Workplace& place, const std::string& file) {
  std::ifstream in(place / file);
  std::vector<json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line, nullptr, false));
  return lines;
}

std::vector<std::string> csv_lines(const Workplace& place, const std::string& file) {
  std::ifstream in(place / file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::set<std::string> ids_of(const std::vector<json>& lines) {
  std::set<std::string> ids;
  for (const json& line : lines) ids.insert(line.value("cell", ""));
  return ids;
}

Outcome sweep(const Workplace& place, const std::string& text, std::vector<std::string> words = {},
              const JobOptions& options = {}) {
  place.write("g.yaml", kGraph);
  place.write("s.yaml", text);
  std::vector<std::string> command{"sweep", "s.yaml"};
  command.insert(command.end(), words.begin(), words.end());
  return place.run(command, options);
}

TEST(Sweep, KeepsARowOfEveryCell) {
  const Workplace place;
  const Outcome outcome = sweep(place, twelve());
  expect_done(place, outcome);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("sweep s: 12 cells to plan, 12 of them are to be worked on"),
                                 HasSubstr("parameter_equal"), HasSubstr("s: 12 done")));
  const std::vector<std::string> csv = csv_lines(place, "results/s.csv");
  ASSERT_THAT(csv, SizeIs(13));
  EXPECT_THAT(csv[0],
              testing::StartsWith("cell,status,reason,plan.partitioner,data.batch,plan.micro_batches,partitioner,"));
  EXPECT_THAT(csv[1], HasSubstr(",done,,dp,8,1,dp,"));
  EXPECT_THAT(csv[12], HasSubstr(",done,,parameter_equal,16,2,parameter_equal,"));
  const std::vector<json> lines = lines_of(place, "results/s.jsonl");
  EXPECT_THAT(lines, SizeIs(12));
  EXPECT_THAT(ids_of(lines), AllOf(SizeIs(12), Each(SizeIs(12))));
}

TEST(Sweep, IdentityIsWhatACellComputes) {
  const Workplace one, other;
  expect_done(one, sweep(one, twelve()));
  // Another name, another order, a default written out: the same cells.
  expect_done(other, sweep(other, "sweep: t\nbase:\n  name: named\n  seed: 1\n" + kBase.substr(6) +
                                      "  plan: {schedule: 1f1b}\n"
                                      "matrix:\n  plan.micro_batches: [2, 1]\n  data.batch: [16, 8]\n"
                                      "  plan.partitioner: [dp, parameter_equal, {name: layer_equal}]\n"));
  // The file of the graph is part of a configuration, by its path: cells of two folders differ.
  EXPECT_THAT(ids_of(lines_of(other, "results/t.jsonl")), SizeIs(12));
  const Workplace third;
  expect_done(third, sweep(third, "sweep: u\nrepetitions: 2\n" + kBase));
  EXPECT_THAT(ids_of(lines_of(third, "results/u.jsonl")), SizeIs(2));
}

TEST(Sweep, FindsEveryErrorBeforeAnythingRuns) {
  const Workplace place;
  const Outcome outcome =
      sweep(place, "sweep: s\n" + kBase + "matrix:\n  plan.partitioner: [dp, dpp]\n  data.batch: [8, 0]\n");
  expect_one_error(place, outcome, 2,
                   {"s.yaml:7:26: plan.partitioner: ", "'dpp' (did you mean 'dp'?)", "data.batch: found '0'"});
  EXPECT_EQ(outcome.out, "");
  EXPECT_FALSE(std::filesystem::exists(place / "results"));
  expect_one_error(place, sweep(place, twelve("exclude: [{data.batch: 32}]\n")), 2,
                   {"no combination of the matrix is left for this to exclude"});
  expect_one_error(place, sweep(place, "sweep: s\n" + kBase + "matrix: {plan.stages: [3, 4]}\n"), 2,
                   {"plan.stages 3 needs 3 ranks or more"});
  place.write("e.yaml", tiny());
  expect_one_error(place, place.run({"sweep", "e.yaml"}), 2, {"this is one experiment"});
  place.write("s.yaml", twelve());
  expect_one_error(place, place.run({"plan", "s.yaml"}), 2, {"this is a sweep of experiments"});
}

// REPORTS S06: of 9 combinations 3 need more than 4 devices, one more than the network's operators; 0.1 is 1e-1.
TEST(Sweep, WhatCannotFitIsInfeasibleBeforeAnythingRuns) {
  const Workplace place;
  const std::string text = "sweep: s\n" + kBase +
                           "  plan: {micro_batches: 1}\nmatrix:\n  cluster.flat.devices: [4]\n"
                           "  plan.stages: [1, 2, 4]\n  plan.pipelines: [1, 2, 4]\n"
                           "  train.optimizer.lr: [0.1, 1e-1]\n";
  const Outcome listed = sweep(place, text, {"--dry-run"});
  expect_done(place, listed);
  EXPECT_THAT(listed.out, AllOf(HasSubstr("sweep s: 9 cells to plan, 5 of them are to be worked on"),
                                HasSubstr("infeasible without a search: 4 cells, such as cell 6: "),
                                HasSubstr("excluded: 9 combinations: the same experiment as another cell, such as "),
                                HasSubstr("train.optimizer.lr=1e-1 as cell 1\n")));
  EXPECT_FALSE(std::filesystem::exists(place / "results"));
  const Outcome outcome = sweep(place, text, {"--format", "json"});
  expect_done(place, outcome);
  const json cells = document(outcome).at("cells");
  ASSERT_THAT(cells, SizeIs(9));
  EXPECT_EQ(cells[0].at("status"), "done");
  EXPECT_EQ(cells[5].at("status"), "infeasible");  // 2 x 4
  EXPECT_THAT(cells[5].at("reason").get<std::string>(), HasSubstr("needs 8 ranks or more"));
  EXPECT_THAT(lines_of(place, "results/s.jsonl"), SizeIs(9));
  const Outcome again = sweep(place, text, {"--dry-run", "--resume"});
  EXPECT_THAT(again.out, HasSubstr("9 cells to plan, 0 of them are"));
}

// Whatever the number of cells, at most the last ten lines of the log are not in the tables that others read.
TEST(Sweep, ReadersSeeEveryTenthCell) {
  const Workplace place;
  std::string batches = "8";
  for (int batch = 9; batch < 80; ++batch) batches += ", " + std::to_string(batch);
  place.write("g.yaml", kGraph);
  place.write("s.yaml", "sweep: s\n" + kBase +
                            "matrix: {plan.partitioner: [dp, layer_equal, parameter_equal], data.batch: [" + batches +
                            "]}\n");
  {
    Job job(place, {"sweep", "s.yaml", "--quiet"}, {});
    job.until("rows", [&] { return lines_of(place, "results/s.jsonl").size() >= 127; });
  }  // killed
  const std::size_t logged = ids_of(lines_of(place, "results/s.jsonl")).size();
  const std::size_t seen = csv_lines(place, "results/s.csv").size() - 1;
  EXPECT_GE(seen, (logged - 1) / 10 * 10);
  EXPECT_THAT(place.run({"watch", "results/s.h5"}).out, HasSubstr("ended without a word: killed: "));
}

TEST(Sweep, FailuresAreToldAtOnceAndMayEndIt) {
  const Workplace place;
  const std::string text = slow_cells(6, "limits: {time: 100 ms}\n");
  place.write("s.yaml", text);
  const Outcome outcome = place.run({"sweep", "s.yaml", "--jobs", "1", "--fail-fast"});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("): timeout: limits.time 100"));
  EXPECT_THAT(lines_of(place, "results/s.jsonl"), SizeIs(1));
  EXPECT_EQ(place.run({"sweep", "s.yaml", "--jobs", "2", "--resume", "--quiet"}).code, 4);
  EXPECT_THAT(lines_of(place, "results/s.jsonl"), SizeIs(6));
}

TEST(Sweep, ResultsAreNotReplacedUnasked) {
  const Workplace place;
  expect_done(place, sweep(place, twelve()));
  expect_one_error(place, sweep(place, twelve()), 2, {"results/s.jsonl: exists already", "--resume", "--overwrite"});
  const Outcome again = sweep(place, twelve(), {"--resume"});
  expect_done(place, again);
  EXPECT_THAT(again.out, HasSubstr("0 of them are to be worked on"));
  expect_done(place, sweep(place, twelve(), {"--overwrite", "--quiet"}));
  EXPECT_THAT(lines_of(place, "results/s.jsonl"), SizeIs(12));
  place.write("results/t.h5", "mine");
  expect_one_error(place, sweep(place, "sweep: t\n" + kBase, {"--overwrite"}), 2, {"t.h5 exists and holds no cells"});
}

TEST(Sweep, FailedCellsKeepTheirReasonAndAreTriedAgain) {
  const Workplace place;
  const std::string text = "sweep: s\n" + kBase +
                           "limits: {time: 8 s}\n"
                           "matrix: {plan.memory_limit: [1 GiB, 1 MiB]}\n"
                           "include:\n"
                           "  - {model: {name: synthetic, options: {shape: random_dag, operators: 3000}}, "
                           "plan.partitioner: {name: genetic, time_limit: 60 s}}\n";
  const Outcome outcome = sweep(place, text, {"--format", "json"});
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  const json cells = document(outcome).at("cells");
  ASSERT_THAT(cells, SizeIs(3));
  EXPECT_EQ(cells[0].at("status"), "done");
  EXPECT_EQ(cells[1].at("status"), "infeasible");
  EXPECT_THAT(cells[1].at("reason").get<std::string>(), HasSubstr("memory"));
  EXPECT_EQ(cells[2].at("status"), "timeout");
  EXPECT_THAT(cells[2].at("reason").get<std::string>(), HasSubstr("limits.time 8"));
  EXPECT_THAT(place.left_over(), testing::IsEmpty());
  // Only the one that failed is worked on again; each cell still has one line.
  const Outcome again = sweep(place, text, {"--resume"});
  EXPECT_EQ(again.code, 4);
  EXPECT_THAT(again.out, AllOf(HasSubstr("3 cells to plan, 1 of them"), HasSubstr("s: 1 timeout")));
  EXPECT_THAT(lines_of(place, "results/s.jsonl"), SizeIs(3));
  EXPECT_THAT(csv_lines(place, "results/s.csv"), SizeIs(4));
}

TEST(Sweep, ACellThatNeedsTooMuchMemorySaysSo) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer itself takes more address space than any limit";
#endif
  const Workplace place;
  const Outcome outcome = sweep(place,
                                "sweep: s\nlimits: {memory: 120 MiB}\n" + kBase +
                                    "include:\n  - {data.batch: 16}\n"
                                    "  - {model: {name: synthetic, options: {shape: chain, operators: 100000}}}\n",
                                {"--format", "json"});
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  const json cells = document(outcome).at("cells");
  ASSERT_THAT(cells, SizeIs(2));
  EXPECT_EQ(cells[0].at("status"), "done");
  EXPECT_EQ(cells[1].at("status"), "memory");
  EXPECT_THAT(cells[1].at("reason").get<std::string>(), HasSubstr("limits.memory 120"));
}

TEST(Sweep, H5pyReadsTheResults) {
  if (std::system("/usr/bin/python3 -c 'import h5py' 2> /dev/null") != 0)
    GTEST_SKIP() << "python3-h5py is not installed";
  const Workplace place;
  expect_done(place, sweep(place, twelve("include: [{plan.memory_limit: 1 MiB}]\n")));
  std::ofstream(place / "read.py") << R"(
import h5py, json, math
file = h5py.File("results/s.h5", "r")
table = file["cells"]
rows = table[: table.attrs["rows"]]
assert len(rows) == 13 and file.attrs["status"] == "complete", (len(rows), file.attrs["status"])
assert rows.dtype.names[:6] == ("cell", "status", "reason", "plan.partitioner", "data.batch", "plan.micro_batches")
assert rows["status"][0] == b"done" and rows["throughput_samples_per_s"][0] > 0 and rows["peak_memory_bytes"][0] > 0
assert rows["status"][12] == b"infeasible" and math.isnan(rows["throughput_samples_per_s"][12])
assert len(table.attrs["unit"]) == len(rows.dtype.names)
detail = file["cells_detail"][rows["cell"][0].decode()]
assert detail["config"][()].decode().startswith("name: s\n")
assert detail["plan"][()].decode().startswith("millrace_plan: 1\n")
assert json.loads(detail["stages"][()])[0]["op_count"] >= 1
print("read")
)";
  EXPECT_EQ(std::system(("cd " + (place / "").string() + " && /usr/bin/python3 read.py > read.out 2>&1").c_str()), 0);
  std::ifstream said(place / "read.out");
  std::ostringstream text;
  text << said.rdbuf();
  EXPECT_EQ(text.str(), "read\n");
}

TEST(Sweep, InfeasibleCellsAreResults) {
  const Workplace place;
  const Outcome outcome = sweep(place, "sweep: s\n" + kBase + "matrix: {plan.memory_limit: [1 GiB, 1 MiB]}\n");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("1 done, 1 infeasible"));
}

// The processes of cells: those in the sweep's folder that are not the sweep.
std::vector<pid_t> workers_of(const Workplace& place, pid_t sweep) {
  std::vector<pid_t> all = place.processes();
  all.erase(std::remove(all.begin(), all.end(), sweep), all.end());
  return all;
}

TEST(Sweep, AKilledWorkerIsAFailedCell) {
  const Workplace place;
  place.write("s.yaml", slow_cells(6));
  Job job(place, {"sweep", "s.yaml", "--jobs", "1"}, {});
  const auto logged = [&] { return lines_of(place, "results/s.jsonl").size(); };
  job.until("the first cell", [&] { return logged() >= 1; });
  const pid_t sweep = place.processes().front();
  job.until("a worker", [&] { return !workers_of(place, sweep).empty(); });
  ::kill(workers_of(place, sweep).front(), SIGKILL);
  const Outcome outcome = job.wait();
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("5 done, 1 error"), HasSubstr("ended by Killed")));
  const Outcome again = place.run({"sweep", "s.yaml", "--resume", "--quiet"});
  expect_done(place, again);
  EXPECT_THAT(lines_of(place, "results/s.jsonl"), SizeIs(6));
}

TEST(Sweep, ASecondSweepOnTheSameFileIsRefused) {
  const Workplace place;
  place.write("s.yaml", slow_cells(4));
  Job job(place, {"sweep", "s.yaml"}, {});
  job.until("the lock", [&] { return std::filesystem::exists(place / "results/s.h5.lock"); });
  const Outcome second = place.run({"sweep", "s.yaml", "--resume"});
  EXPECT_EQ(second.code, 2);
  EXPECT_THAT(second.err, AllOf(HasSubstr("results/s.h5: is being written by process"), HasSubstr("on host")));
  EXPECT_EQ(job.wait().code, 0);
}

TEST(Sweep, AKillAtAnyMomentLosesAndDoublesNoRow) {
  const Workplace place;
  place.write("s.yaml", slow_cells(16));
  const auto logged = [&] { return lines_of(place, "results/s.jsonl").size(); };
  std::size_t before = 0;
  for (const std::size_t rows : {1U, 5U, 11U}) {
    {
      Job job(place, {"sweep", "s.yaml", "--resume", "--quiet"}, {});
      job.until("some rows", [&] { return logged() >= rows; });
    }  // killed with its workers
    EXPECT_THAT(place.left_over(), testing::IsEmpty());
    EXPECT_GE(logged(), std::max(before, rows));
    before = logged();
  }
  const Outcome rest = place.run({"sweep", "s.yaml", "--resume"});
  expect_done(place, rest);
  const std::vector<json> lines = lines_of(place, "results/s.jsonl");
  EXPECT_THAT(lines, SizeIs(16));
  EXPECT_THAT(ids_of(lines), SizeIs(16));
  EXPECT_THAT(rest.out, HasSubstr(std::to_string(16 - before) + " of them"));
}

TEST(Sweep, WhatAKillCutOffIsWorkedOnAgain) {
  const Workplace place;
  expect_done(place, sweep(place, twelve()));
  std::ifstream in(place / "results/s.jsonl");
  std::ostringstream all;
  all << in.rdbuf();
  const std::string whole = all.str();
  std::ofstream(place / "results/s.jsonl") << whole.substr(0, whole.size() - 20);
  const Outcome again = sweep(place, twelve(), {"--resume"});
  expect_done(place, again);
  EXPECT_THAT(again.out, HasSubstr("12 cells to plan, 1 of them is to be worked on"));
  EXPECT_THAT(ids_of(lines_of(place, "results/s.jsonl")), SizeIs(12));
  place.write("results/s.jsonl", whole + "{}\n");
  expect_one_error(place, sweep(place, twelve(), {"--resume"}), 2, {"s.jsonl:13: this is no line of a sweep"});
}

TEST(Sweep, RanksShareTheCells) {
  const Workplace place;
  const Outcome outcome = sweep(place, twelve(), {}, {.ranks = 3});
  expect_done(place, outcome);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("with 3 at once"), HasSubstr("12 done")));
  EXPECT_THAT(outcome.err, Not(HasSubstr("fork")));
  EXPECT_THAT(ids_of(lines_of(place, "results/s.jsonl")), SizeIs(12));
  const Workplace wrong;
  expect_one_error(wrong, sweep(wrong, "sweep: s\n" + kBase + "matrix: {data.batch: [0]}\n", {}, {.ranks = 3}), 2,
                   {"data.batch: found '0'"});
}

TEST(Sweep, CellsThatTrainAreJobsOfTheirOwn) {
  const Workplace place;
  const std::string text =
      "sweep: s\ncommand: run\nbase:\n  model: {name: mlp, options: {inputs: 16, hidden: [32], classes: 4}}\n"
      "  data: {batch: 32}\n  train: {iterations: 4}\nmatrix: {ranks: [1, 2]}\n";
  const Outcome outcome = sweep(place, text, {"--format", "json"});
  expect_done(place, outcome);
  const json cells = document(outcome).at("cells");
  ASSERT_THAT(cells, SizeIs(2));
  for (const json& cell : cells) {
    EXPECT_EQ(cell.at("kind"), "measured");
    EXPECT_GT(cell.at("throughput_samples_per_s").get<double>(), 0);
    EXPECT_GT(cell.at("predicted_iteration_time_s").get<double>(), 0);
  }
  EXPECT_EQ(cells[1].at("devices"), 2);
  expect_one_error(place, sweep(place, text, {"--overwrite"}, {.ranks = 2}), 2, {"started alone, without mpirun"});
}

// More ranks than cores, on a machine whose launcher allows that only when it is asked to.
TEST(Sweep, JobsMayHaveMoreRanksThanTheMachineHasCores) {  // REPORTS C09
  const Workplace place;
  const std::string text =
      "sweep: s\ncommand: run\nbase:\n  model: {name: mlp, options: {inputs: 16, hidden: [32], classes: 4}}\n"
      "  data: {batch: 32}\n  plan: {stages: 1}\n  train: {iterations: 2, evaluate_every: off}\nmatrix: {ranks: [" +
      std::to_string(std::thread::hardware_concurrency() + 1) + "]}\n";
  const Outcome outcome =
      sweep(place, text, {"--format", "json"}, {.environment = {{"OMPI_MCA_rmaps_base_oversubscribe", "0"}}});
  expect_done(place, outcome);
  EXPECT_EQ(document(outcome).at("cells")[0].at("kind"), "oversubscribed");
}

TEST(Sweep, AJobThatHangsOrFailsIsAFailedCell) {  // REPORTS S05, C07
  const Workplace place;
  const std::string text =
      "sweep: s\ncommand: run\nlimits: {time: 15 s}\nbase:\n"
      "  model: {name: mlp, options: {inputs: 16, hidden: [1000, 1000, 1000], classes: 4}}\n"
      "  data: {batch: 32}\n  train: {evaluate_every: off}\nmatrix: {train.iterations: [4, 1000000]}\n"
      "include: [{train.iterations: 50, train.maximum_skips: 3, train.optimizer.lr: 1e30}]\n";
  const Outcome outcome = sweep(place, text, {"--format", "json"});
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  const json cells = document(outcome).at("cells");
  ASSERT_THAT(cells, SizeIs(3));
  EXPECT_EQ(cells[0].at("status"), "done") << cells[0].at("reason");
  EXPECT_EQ(cells[1].at("status"), "timeout");
  EXPECT_EQ(cells[1].at("reason"), "limits.time 15.00 s");
  EXPECT_EQ(cells[2].at("status"), "error");
  EXPECT_THAT(cells[2].at("reason").get<std::string>(),
              AllOf(HasSubstr("3 iterations in a row"), HasSubstr("exit code 4")));
  EXPECT_THAT(place.left_over(), testing::IsEmpty());
}

TEST(Sweep, ArraysAreAsLongAsTheSiteAllows) {  // REPORTS S02
  const Workplace place;
  place.write("bin/scontrol", "#!/bin/sh\necho 'MaxArraySize            = 7'\n");
  place.write("bin/sbatch", "#!/bin/sh\necho 7\n");
  for (const char* tool : {"bin/scontrol", "bin/sbatch"}) {
    std::filesystem::permissions(place / tool, std::filesystem::perms::owner_all);
  }
  const std::string path = (place / "bin").string() + ":" + std::getenv("PATH");
  expect_done(place, sweep(place, twelve(), {"--slurm"}, {.environment = {{"PATH", path}}}));
  EXPECT_THAT(text_of(place / "results/s.slurm/array-000.sbatch"), HasSubstr("--array=0-6%"));
  EXPECT_THAT(text_of(place / "results/s.slurm/array-001.sbatch"),
              AllOf(HasSubstr("--array=0-4%"), HasSubstr("--cell $((8 + SLURM_ARRAY_TASK_ID))")));
}

}  // namespace
}  // namespace millrace::cli
