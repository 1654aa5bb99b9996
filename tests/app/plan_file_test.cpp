// Numbers of a plan come from the plan and the inputs alone: a plan that is written and given back has the same.
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app/planning.h"
#include "app/print.h"
#include "plan/plan_text.h"
#include "schedules/registry.h"
#include "tests/app/experiment_file.h"

namespace millrace::app {
namespace {

constexpr int kRanks = 4;

// Figures of a plan without what the search adds: who found it, when, and what it proved.
nlohmann::json figures(const plan::PlanReport& report, const Graph& graph) {
  nlohmann::json json = plan_json(report, graph);
  for (const char* key : {"partitioner", "order", "planning_time_s", "stopped_by", "bound", "bound_source",
                          "optimality_gap", "certificate"}) {
    json.erase(key);
  }
  return json;
}

void expect_same_again(const std::string& text) {
  SCOPED_TRACE(text);
  const ExperimentFile file(text);
  const Session session = planning_session(file.read(), kRanks);
  Arguments arguments;
  arguments.command = "plan";  // all of its plans have the devices' memory
  const Planned planned = make_plans(session, arguments);
  ASSERT_FALSE(planned.ranking.plans.empty()) << planned.why_not;
  for (const plan::Candidate& candidate : planned.ranking.plans) {
    const std::string path = (file.folder() / "plan.yaml").string();
    std::ofstream(path) << plan::to_yaml(candidate.plan, session.graph);
    const Session again = planning_session(file.read({"plan.file=" + path}), kRanks);
    const Planned read = make_plans(again, Arguments());
    ASSERT_FALSE(read.ranking.plans.empty()) << read.why_not;
    EXPECT_EQ(read.ranking.plans[0].plan, candidate.plan);
    EXPECT_EQ(figures(read.ranking.plans[0].report, again.graph), figures(candidate.report, session.graph));
  }
}

std::string mlp(const std::string& cluster, const std::string& plan) {
  return "name: t\nmodel: {name: mlp, options: {inputs: 4, hidden: [8, 16, 8], classes: 3}}\ndata: {batch: 27}\n" +
         ("cluster: " + cluster + "\nplan: {" + plan + "}\n");
}

TEST(PlanFile, GivesTheSameFiguresForEveryObjective) {
  const std::vector<std::string> clusters{
      "local", "{flat: {devices: 4, bandwidth: 1 GB/s, latency: 3 us}, speeds: [1, 0.7, 0.7, 0.3]}",
      "{levels: [{count: 2, bandwidth: 1 GB/s}, {count: 2, bandwidth: 1 Gb/s, latency: 7 us}]}"};
  for (const std::string& cluster : clusters) {
    for (const char* objective : {"throughput", "bottleneck", "memory_efficiency", "communication"}) {
      expect_same_again(mlp(cluster, "objective: " + std::string(objective) +
                                         ", partitioner: [dp, layer_equal, parameter_equal, data_parallel], "
                                         "schedule: [gpipe, 1f1b], micro_batches: [1, 4, 5]"));
    }
  }
}

TEST(PlanFile, GivesTheSameFiguresForEverySchedule) {
  for (const schedules::Entry& entry : schedules::registry()) {
    const std::string schedule =
        ", schedule: {name: " + entry.name +
        (entry.name.starts_with("zb-") && !entry.name.starts_with("zb-h") ? ", moves: 0}" : "}");
    const std::string shape = "micro_batches: 4, partitioner: layer_equal, stages: 2, pipelines: ";
    expect_same_again(mlp("local", shape + "1" + schedule));
    if ((entry.capabilities & schedules::kTakesWarmup) == 0 || entry.name == "hippie") continue;
    expect_same_again(mlp("local", shape + "2, warmup: [2, 1]" + schedule));
    // More devices than are simulated to rank plans: closed forms.
    const std::string many = "{flat: {devices: 2000, bandwidth: 1 GB/s}}";
    const std::string wide =
        "name: t\nmodel: {name: mlp, options: {inputs: 4, hidden: [8, 16, 8], classes: 3}}\n"
        "data: {batch: 8000}\ncluster: " +
        many + "\nplan: {" + shape + "1000";
    expect_same_again(wide + schedule + "}\n");
    expect_same_again(wide + ", warmup: [3, 1]" + schedule + "}\n");
  }
}

std::string with_graph(const std::string& graph, const std::string& rest) {
  return "name: t\nmodel: {file: " + graph + "}\n" + rest;
}

TEST(PlanFile, GivesTheSameValueForPublishedObjectives) {
  const storage::TemporaryFolder folder;
  std::ofstream(folder / "split.json") << R"({"maxSizePerFPGA": 100, "maxFPGAs": 2, "maxCPUs": 1, "nodes": [
    {"id": 0, "supportedOnFpga": 1, "cpuLatency": 30, "fpgaLatency": 3, "isBackwardNode": 0, "colorClass": 0, "size": 10},
    {"id": 1, "supportedOnFpga": 1, "cpuLatency": 50, "fpgaLatency": 5, "isBackwardNode": 0, "colorClass": 1, "size": 10},
    {"id": 2, "supportedOnFpga": 1, "cpuLatency": 40, "fpgaLatency": 4, "isBackwardNode": 0, "colorClass": 2, "size": 10}],
    "edges": [{"sourceId": 0, "destId": 1, "cost": 0.5}, {"sourceId": 1, "destId": 2, "cost": 0.25}]})";
  std::ofstream(folder / "profile.txt")
      << "node1 -- Input -- forward_compute_time=0.000, backward_compute_time=0.000, activation_size=1000.0, "
         "parameter_size=0.000\n"
         "node2 -- Linear -- forward_compute_time=1.500, backward_compute_time=3.000, activation_size=2000.0, "
         "parameter_size=4000.000\n"
         "node3 -- Linear -- forward_compute_time=2.500, backward_compute_time=4.000, activation_size=2000.0, "
         "parameter_size=8000.000\n"
         "\tnode1 -- node2\n\tnode2 -- node3\n";
  expect_same_again(
      with_graph((folder / "split.json").string(), "cluster: model\nplan: {objective: max_load, partitioner: dp}\n"));
  expect_same_again(with_graph((folder / "profile.txt").string(),
                               "data: {batch: 8}\ncluster: {flat: {devices: 4, bandwidth: 1 GB/s}}\n"
                               "plan: {objective: pipedream, partitioner: dp}\n"));
}

TEST(PlanFile, APlanThatDoesNotFitSaysWhy) {
  const ExperimentFile file(mlp("local", "pipelines: 1, stages: 2, micro_batches: 3"));
  const Session session = planning_session(file.read(), 2);
  const Planned planned = make_plans(session, Arguments());
  const std::string path = (file.folder() / "plan.yaml").string();
  std::ofstream(path) << plan::to_yaml(planned.ranking.plans.at(0).plan, session.graph);
  const Session tight = planning_session(file.read({"plan.file=" + path, "plan.memory_limit=10 B"}), 2);
  const Planned read = make_plans(tight, Arguments());
  EXPECT_TRUE(read.ranking.plans.empty());
  EXPECT_THAT(read.why_not, testing::HasSubstr("plan.yaml does not fit: stage"));
}

}  // namespace
}  // namespace millrace::app
