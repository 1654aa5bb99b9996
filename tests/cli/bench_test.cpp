// `millrace bench planner`: its list is checked as a whole before anything runs, and what is missing is named.
#include <fmt/format.h>

#include "tests/cli/expect.h"

namespace millrace::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kGraph =
    "millrace_graph: 1\nname: two\noperators:\n"
    "  - {name: a, kind: cost, forward: 2 ms, output: 1 MiB}\n"
    "  - {name: b, kind: cost, inputs: [a], forward: 3 ms}\n";

// A list with one row.
std::string list(const std::string& model, const std::string& more) {
  return "bench: planner\nrows:\n  - workload: mine\n    model: {file: " + model + "}\n" + more;
}

const std::string kWell = "    partitioners: [dp, layer_equal]\n    published: {dp: 1}\n    published_cpu: 9 h\n";

TEST(Bench, OwnGraphsAreFoundBesideTheList) {
  const Workplace place;
  place.write("lists/g.yaml", kGraph);
  place.write("lists/l.yaml", list("g.yaml", kWell));
  const Outcome outcome = place.run({"bench", "planner", "--data", "lists/l.yaml"});
  expect_done(place, outcome);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("mine"), HasSubstr("layer_equal"), HasSubstr(",")));
  EXPECT_THAT(outcome.out, Not(HasSubstr("e+")));  // the column "faster"
  place.write("lists/gone.yaml", list("gone.yaml.txt", kWell));
  const Outcome gone = place.run({"bench", "planner", "--data", "lists/gone.yaml", "--format", "json"});
  expect_done(place, gone);
  const nlohmann::json row = document(gone).at("rows").at(0);
  EXPECT_EQ(row.at("status"), "skipped");
  EXPECT_THAT(row.at("why_not").get<std::string>(),
              AllOf(HasSubstr("no such file 'gone.yaml.txt'"), HasSubstr("lists/gone.yaml.txt"),
                    HasSubstr("shared/workloads/gone.yaml.txt (--workloads)")));
}

TEST(Bench, ListsAreCheckedBeforeTheyRun) {
  const Workplace place;
  place.write("g.yaml", kGraph);
  const auto refused = [&](const std::string& text, const std::vector<std::string>& parts) {
    place.write("l.yaml", text);
    const Outcome outcome = place.run({"bench", "planner", "--data", "l.yaml"});
    expect_one_error(place, outcome, 2, parts);
    EXPECT_EQ(outcome.out, "");
  };
  refused("bench: planner\nrows: []\n", {"l.yaml:2:7: rows: found an empty list"});
  refused(list("g.yaml", "    partitioners: []\n"), {"partitioners: found an empty list"});
  refused(list("g.yaml", "    partitioners: [dp, dpp]\n"), {"l.yaml:5:", "'dpp' (did you mean 'dp'?)"});
  refused(list("gone", "    partitioners: [dpp]\n"), {"l.yaml:5:", "'dpp'"});
  refused(list("g.yaml", "    plan: {schedule: 1f2b}\n    partitioners: [dp, exact]\n"), {"'1f2b'"});
}

TEST(Bench, WhatIsNotThereIsNamed) {
  const Workplace place;
  place.write("g.yaml", kGraph);
  place.write("l.yaml", list("g.yaml", kWell));
  expect_one_error(place, place.run({"bench", "planner", "--data", "l.yaml", "--workloads", "nowhere"}), 2,
                   {"--workloads: no such folder 'nowhere'"});
  expect_one_error(place, place.run({"bench", "planner", "--data", "l.yaml", "--only", "x*"}), 2,
                   {"no workload of l.yaml matches 'x*'; it has: mine"});
  // The standard list ships: it is found from any folder.
  expect_one_error(place, place.run({"bench", "planner", "--only", "nothing"}), 2,
                   {"planner_workloads.yaml matches 'nothing'", "layer/gnmt_training"});
}

// A case that runs for real, without a peer.
TEST(Bench, TrainMeasuresSpeedMemoryAndKernels) {
  const Workplace place;
  place.write("l.yaml",
              "bench: train\nrows:\n  - case: small, one process\n"
              "    model: {name: mlp, options: {inputs: 8, hidden: [16], classes: 4}}\n"
              "    data: {batch: 8}\n    costs: measured\n    plan: {micro_batches: 1}\n"
              "    train: {iterations: 4, evaluate_every: off}\n  - case: other\n    model: {name: lenet}\n    data: "
              "{batch: 8}\n");
  const Outcome outcome =
      place.run({"bench", "train", "--data", "l.yaml", "--only", "small*", "--rounds", "2", "--format", "json"});
  expect_done(place, outcome);
  const nlohmann::json rows = document(outcome).at("rows");
  ASSERT_EQ(rows.size(), 1U);
  const nlohmann::json& row = rows.at(0);
  EXPECT_EQ(row.at("case"), "small, one process");
  EXPECT_TRUE(row.at("peer").is_null() && row.at("ratio").is_null() && row.at("memory_ratio").is_null());
  const nlohmann::json& speed = row.at("ours").at("samples_per_s");
  EXPECT_GT(speed.at("least"), 0);
  EXPECT_LE(speed.at("least"), speed.at("median"));
  EXPECT_LE(speed.at("median"), speed.at("most"));
  EXPECT_EQ(row.at("ours").at("memory_mib").size(), 1U);
  EXPECT_EQ(row.at("kernels").at("kinds").size(), 3U);  // linear, relu, cross_entropy
  EXPECT_GT(row.at("kernels").at("share_of_peak"), 0);
  EXPECT_GT(row.at("kernels").at("floor_s"), 0);
  EXPECT_EQ(row.at("kernels").at("share_of_floor").get<double>(),
            row.at("kernels").at("floor_s").get<double>() / row.at("kernels").at("seconds").get<double>());
}

TEST(Bench, ListsOfTrainingAreCheckedBeforeTheyRun) {
  const Workplace place;
  place.write("l.yaml", "bench: train\nrows:\n  - case: a\n    model: lenet\n    peers: x\n");
  expect_one_error(place, place.run({"bench", "train", "--data", "l.yaml"}), 2, {"l.yaml:5:", "'peer'"});
  expect_one_error(place, place.run({"bench", "train", "--only", "nothing"}), 2,
                   {"training_speed.yaml matches 'nothing'", "resnet50 data parallel"});
  expect_one_error(place, place.run({"bench", "train", "--peers", "nowhere"}), 2,
                   {"--peers: no bench.py in 'nowhere'"});
}

// Three cases, whose peers get the word `word` of the second one, `well` else.
std::string three_cases(const std::string& word) {
  std::string text = "bench: train\nrows:\n";
  for (const char* name : {"one", "two", "three"}) {
    text += fmt::format(
        "  - case: {}\n    peer: {}\n    goal: 1.5\n    model: {{name: mlp, options: {{inputs: 8, hidden: [16], "
        "classes: 4}}}}\n"
        "    data: {{batch: 8}}\n    plan: {{micro_batches: 1}}\n    train: {{iterations: 4, evaluate_every: off}}\n",
        name, name == std::string("two") ? word : "well");
  }
  return text;
}

// A peer that says its figures, fails, or ends whoever asked it at once.
constexpr const char* kPeer = R"py(
import os, signal, sys
def words(pid, name):
    with open("/proc/%d/%s" % (pid, name)) as file: return file.read()
if sys.argv[1] == "fail": sys.exit("no such model here")
if sys.argv[1] == "end":
    pid = os.getppid()
    while words(pid, "comm").strip() != "millrace": pid = int(words(pid, "stat").rsplit(")", 1)[1].split()[1])
    os.kill(pid, signal.SIGKILL)
print("UserWarning: what a library says beside it")
print('{"sps": [100.0, 100.0, 100.0], "hwm": [1000.0]}')
)py";

TEST(Bench, WhatFailsTakesNoOtherFiguresAlong) {
  const Workplace place;
  place.write("peers/bench.py", kPeer);
  place.write("l.yaml", three_cases("fail"));
  const std::vector<std::string> words{"bench", "train", "--data", "l.yaml", "--peers", "peers", "--rounds", "1"};
  std::vector<std::string> as_json = words;
  as_json.insert(as_json.end(), {"--format", "json"});
  const Outcome outcome = place.run(as_json);
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("two: the peer failed"), HasSubstr("no such model here")));
  const nlohmann::json rows = document(outcome).at("rows");
  ASSERT_EQ(rows.size(), 3U);
  for (const nlohmann::json& row : rows) {
    const bool failed = row.at("case") == "two";
    EXPECT_EQ(row.at("status"), failed ? "failed" : "done");
    EXPECT_EQ(row.at("ratio").is_null(), failed);
    EXPECT_FALSE(row.at("ours").is_null());
    EXPECT_FALSE(row.at("kernels").is_null());
    EXPECT_EQ(row.at("goal"), 1.5);
  }
  EXPECT_EQ(rows.at(0).at("peer").at("samples_per_s").at("median"), 100.0);
  const Outcome text = place.run(words);
  EXPECT_EQ(text.code, 4);
  EXPECT_THAT(text.out, AllOf(HasSubstr("failed: two: the peer failed"), HasSubstr("goal"), HasSubstr("1.50")));
}

TEST(Bench, RowsArePrintedWhenTheyAreDone) {
  const Workplace place;
  place.write("peers/bench.py", kPeer);
  place.write("l.yaml", three_cases("end"));
  JobOptions options;
  options.environment = {{"TMPDIR", (place / "").string()}};  // for what a killed program leaves
  const Outcome outcome = place.run(
      {"bench", "train", "--data", "l.yaml", "--peers", "peers", "--rounds", "1", "--format", "json"}, options);
  EXPECT_NE(outcome.code, 0);
  const nlohmann::json rest = nlohmann::json::parse(outcome.out + "]}", nullptr, false);
  ASSERT_TRUE(rest.is_object()) << outcome.out;
  ASSERT_EQ(rest.at("rows").size(), 1U);
  EXPECT_EQ(rest.at("rows").at(0).at("case"), "one");
}

TEST(Bench, OptionsOfOtherBenchmarksAreRefused) {
  const Workplace place;
  expect_one_error(place, place.run({"bench", "transport", "--only", "x"}), 2,
                   {"bench transport does not use --only; it takes: --rounds"});
  expect_one_error(place, place.run({"bench", "planner", "--rounds", "8"}), 2,
                   {"bench planner does not use --rounds; it takes: --data, --only, --workloads, --time-limit"});
  expect_one_error(place, place.run({"bench", "sharding", "--data", "x"}), 2, {"bench sharding does not use --data"});
  expect_one_error(place, place.run({"bench", "train", "--format", "csv"}), 2, {"'csv', allowed: table, json"});
  expect_one_error(place, place.run({"bench", "trian"}), 2, {"'trian' (did you mean 'train'?)"});
}

TEST(Bench, TransportPrintsAWholeDocument) {
  const Workplace place;
  const Outcome outcome = place.run({"bench", "transport", "--rounds", "1", "--format", "json"}, {.ranks = 2});
  expect_done(place, outcome);
  const nlohmann::json rows = document(outcome);
  ASSERT_TRUE(rows.is_array());
  EXPECT_EQ(rows.size() % 7, 0U);  // sizes
  EXPECT_EQ(rows.back().at("way"), "mpi");
}

}  // namespace
}  // namespace millrace::cli
