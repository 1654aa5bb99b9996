// The machine that a plan is made for, as users name it, and what plan says of it.
#include <fstream>

#include "tests/cli/expect.h"

namespace millrace::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A chain of cost operators n0, n1, … of these seconds, a third of it forward.
std::string chain(const std::vector<int>& seconds) {
  std::string text = "millrace_graph: 1\nname: chain\noperators:\n";
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const std::string input = i == 0 ? "" : "n" + std::to_string(i - 1);
    text += "  - {name: n" + std::to_string(i) + ", kind: cost, inputs: [" + input +
            "], forward: " + std::to_string(seconds[i]) + " s, backward: " + std::to_string(2 * seconds[i]) + " s}\n";
  }
  return text;
}

std::string of_graph(const std::string& cluster, const std::string& plan) {
  return "name: t\nmodel: {file: graph.yaml}\ncluster: " + cluster + "\nplan: {" + plan + "}\n";
}

TEST(Machine, AJobNeedsARankForEachDevice) {  // REPORTS P15
  const Workplace place;
  place.write("e.yaml", tiny("cluster: {flat: {devices: 4, bandwidth: 1 GB/s}}\ntrain: {iterations: 1}\n"));
  for (const int ranks : {3, 6}) {
    expect_one_error(place, place.run({"run", "e.yaml"}, {ranks}), 2,
                     {"has 4 devices", "the job has " + std::to_string(ranks) + " ranks"});
  }
  expect_done(place, place.run({"run", "e.yaml"}, {4}));
}

TEST(Machine, PlanningTakesTheSizeOfTheCluster) {
  const Workplace place;
  place.write("e.yaml", tiny("cluster: {levels: [{count: 2, bandwidth: 25 GB/s}, {count: 3, bandwidth: 25 Gb/s}]}\n"));
  for (const char* command : {"plan", "simulate", "check"}) {
    const Outcome outcome = place.run({command, "e.yaml", "--format", "json"});
    expect_done(place, outcome);
    EXPECT_EQ(document(outcome).at("problem").at("devices"), 6) << command;
  }
  expect_one_error(place, place.run({"plan", "e.yaml", "--ranks", "4"}), 2, {"--ranks 4", "has 6 devices"});
  // REPORTS P16: both links in bytes per second, with what else went in.
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"plan", "e.yaml", "--explain"}, {"check", "e.yaml", "--verbose"}}) {
    const Outcome outcome = place.run(words);
    expect_done(place, outcome);
    EXPECT_THAT(outcome.out,
                AllOf(HasSubstr("2.5e10 B/s"), HasSubstr("3.125e9 B/s"), HasSubstr("6 devices on 3 nodes")));
  }
}

TEST(Machine, ExplainGivesTheArithmeticThatATestByHandGives) {
  const Workplace place;
  place.write("graph.yaml", chain({1, 1, 1, 1}));
  place.write("e.yaml", "data: {batch: 8}\n" + of_graph("{flat: {devices: 4, bandwidth: unlimited}}",
                                                        "pipelines: 1, stages: 4, micro_batches: 8"));
  const Outcome outcome = place.run({"plan", "e.yaml", "--explain"});
  expect_done(place, outcome);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("iteration: (m + p - 1) (F + B) = (8 + 4 - 1) x (1 s + 2 s) = 33 s\n"),
                                 HasSubstr("bottleneck: n0 (stage 0 of pipeline 0"), HasSubstr("bound: ")));
}

TEST(Machine, TheGiantOperatorIsNamed) {  // REPORTS P08
  const Workplace place;
  place.write("graph.yaml", chain({1, 1, 1, 20, 1, 1, 1}));
  place.write("e.yaml",
              "data: {batch: 4}\n" + of_graph("{flat: {devices: 4, bandwidth: unlimited}}",
                                              "objective: bottleneck, pipelines: 1, stages: 4, micro_batches: 4"));
  const Outcome outcome = place.run({"plan", "e.yaml"});
  expect_done(place, outcome);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("bottleneck: n3"), HasSubstr("bound: 60 s/sample (largest operator)")));
}

TEST(Machine, UnequalDevicesShareByTheirSpeed) {  // REPORTS P18, times of one pass: a third forward
  const Workplace place;
  const std::string plan = "objective: bottleneck, pipelines: 1, stages: 2, micro_batches: 1";
  const auto slowest = [&](int operators, const std::string& cluster) {
    place.write("graph.yaml", chain(std::vector<int>(static_cast<std::size_t>(operators), 1)));
    place.write("e.yaml", "data: {batch: 1}\n" + of_graph(cluster, plan));
    const Outcome outcome = place.run({"plan", "e.yaml", "--format", "json"});
    expect_done(place, outcome);
    return document(outcome).at("plans").at(0).at("bottleneck_s").get<double>();
  };
  for (const char* speeds : {"[1, 2]", "[2, 1]"}) {
    const std::string cluster = "{flat: {devices: 2, bandwidth: unlimited}, speeds: " + std::string(speeds) + "}";
    EXPECT_NEAR(slowest(8, cluster), 3 * 3.0, 1e-9);  // 2 on the slow one, 6 on the fast
    EXPECT_NEAR(slowest(9, cluster), 3 * 3.0, 1e-9);  // 3 and 6
  }
}

TEST(Machine, AnExistingPlanIsRefusedBeforeAnythingIsPrinted) {
  const Workplace place;
  place.write("e.yaml", tiny());
  place.write("p.yaml", "mine\n");
  for (const std::vector<std::string>& format : {std::vector<std::string>{}, {"--format", "json"}}) {
    std::vector<std::string> words{"plan", "e.yaml", "-o", "p.yaml"};
    words.insert(words.end(), format.begin(), format.end());
    const Outcome outcome = place.run(words);
    expect_one_error(place, outcome, 2, {"p.yaml", "--overwrite"});
    EXPECT_EQ(outcome.out, "");
  }
  std::ifstream file(place / "p.yaml");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "mine\n");
}

TEST(Machine, WhenNothingFitsTheDocumentIsPrintedAllTheSame) {  // REPORTS M02
  const Workplace place;
  place.write("e.yaml", tiny("plan: {memory_limit: 1 KiB, micro_batches: 4}\n"));
  for (const char* command : {"plan", "simulate", "check"}) {
    const Outcome outcome = place.run({command, "e.yaml", "--ranks", "2", "--time-limit", "5 min", "--format", "json"});
    EXPECT_EQ(outcome.code, 3) << command;
    const json all = document(outcome);
    EXPECT_TRUE(all.at("plans").empty());
    EXPECT_THAT(all.at("why_not").get<std::string>(), AllOf(HasSubstr("no plan fits"), Not(HasSubstr("at most"))));
  }
}

// The figure of `plan` and `simulate` is the limit that a run keeps, to the byte, evaluation included.
TEST(Machine, MemoryOfAPlanIsWhatARunHolds) {
  const Workplace place;
  place.write("e.yaml", tiny("train: {iterations: 2}\n"));
  for (const char* plan :
       {"{pipelines: 1, stages: 2, schedule: 1f1b, micro_batches: 3}", "{pipelines: 2, stages: 1, micro_batches: 2}",
        "{pipelines: 1, stages: 4, schedule: interleaved, micro_batches: 4}"}) {
    const std::string set = std::string("plan=") + plan;
    const Outcome planned = place.run({"plan", "e.yaml", "--ranks", "2", "--set", set, "--format", "json"});
    expect_done(place, planned);
    const std::int64_t peak = document(planned).at("plans").at(0).at("peak_memory_bytes").get<std::int64_t>();
    const Outcome simulated = place.run({"simulate", "e.yaml", "--ranks", "2", "--set", set, "--format", "json"});
    expect_done(place, simulated);
    std::int64_t fullest = 0;
    const json all = document(simulated);
    for (const json& rank : all.at("ranks")) {
      fullest = std::max(fullest, rank.at("peak_memory_bytes").get<std::int64_t>());
    }
    EXPECT_EQ(fullest, peak) << plan;
    const std::string limit = "plan.memory_limit=" + std::to_string(peak) + " B";
    const Outcome run = place.run(
        {"run", "e.yaml", "--set", set, "--set", limit, "--overwrite", "--quiet", "--format", "json"}, {.ranks = 2});
    expect_done(place, run);
    EXPECT_EQ(document(run).at("measured").at("peak_memory_bytes"), peak) << plan;
    EXPECT_EQ(document(run).at("prediction_error").at("peak_memory"), 0.0) << plan;
    const std::string less = "plan.memory_limit=" + std::to_string(peak - 1) + " B";
    EXPECT_EQ(place.run({"plan", "e.yaml", "--ranks", "2", "--set", set, "--set", less}).code, 3) << plan;
  }
}

TEST(Machine, ClustersThatShipAreListedAndUsable) {
  const Workplace place;
  const Outcome list = place.run({"clusters", "--format", "json"});
  expect_done(place, list);
  bool found = false;
  for (const json& row : document(list)) {
    for (const char* key : {"name", "description", "options", "capabilities", "devices", "nodes", "kinds", "links"}) {
      EXPECT_TRUE(row.contains(key)) << key;
    }
    if (row.at("name") != "v100x4-p100x4") continue;
    found = true;
    EXPECT_EQ(row.at("devices"), 8);
    EXPECT_EQ(row.at("nodes"), 2);
    EXPECT_EQ(row.at("kinds").at(1).at("name"), "p100");
    EXPECT_EQ(row.at("kinds").at(1).at("memory_bytes"), 17179869184);
    EXPECT_EQ(row.at("links").at(1).at("bandwidth_bytes_per_s"), 3.125e9);
  }
  EXPECT_TRUE(found);
  const Outcome table = place.run({"clusters"});
  EXPECT_THAT(table.out, HasSubstr("4 x v100, 4 x p100"));
  place.write("e.yaml", tiny("cluster: v100x4-p100x4\n"));
  const Outcome plan = place.run({"plan", "e.yaml", "--format", "json"});
  expect_done(place, plan);
  EXPECT_EQ(document(plan).at("problem").at("devices"), 8);
}

}  // namespace
}  // namespace millrace::cli
