// `millrace simulate` as users call it: exact times and memory of small pipelines, degenerate sizes, refusals.
#include <fstream>
#include <vector>

#include "tests/cli/expect.h"

namespace millrace::cli {
namespace {

using nlohmann::json;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

// A chain of equal cost operators, forward 1 s, backward 2 s, that each keep 100 MB of a sample.
void write_chain(const Workplace& place, int operators, const std::string& more = "") {
  std::string text = "millrace_graph: 1\nname: chain\noperators:\n";
  for (int i = 0; i < operators; ++i) {
    const std::string input = i == 0 ? "" : "n" + std::to_string(i - 1);
    text += "  - {name: n" + std::to_string(i) + ", kind: cost, inputs: [" + input +
            "], forward: 1 s, backward: 2 s, saved: 100 MB" + more + "}\n";
  }
  place.write("graph.yaml", text);
}

void write_experiment(const Workplace& place, int devices, const std::string& plan, const std::string& more = "") {
  place.write("e.yaml", "name: t\nmodel: {file: graph.yaml}\ndata: {batch: 8}\ncluster: {flat: {devices: " +
                            std::to_string(devices) + ", bandwidth: unlimited}}\nplan: {" + plan + "}\n" + more);
}

json simulated(const Workplace& place, const std::vector<std::string>& sets = {}) {
  std::vector<std::string> words{"simulate", "e.yaml", "--format", "json"};
  for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
  const Outcome outcome = place.run(words);
  expect_done(place, outcome);
  return document(outcome);
}

std::vector<std::int64_t> activations(const json& document) {
  std::vector<std::int64_t> bytes;
  for (const json& rank : document.at("ranks")) bytes.push_back(rank.at("peak_memory").at("activations"));
  return bytes;
}

TEST(Simulate, TimesOfBalancedStagesAreExact) {  // REPORTS P19
  const Workplace place;
  write_chain(place, 4);
  write_experiment(place, 4, "pipelines: 1, stages: 4, micro_batches: 8, warmup: schedule");
  for (const char* schedule : {"1f1b", "gpipe", "hippie"}) {
    const json plan = simulated(place, {std::string("plan.schedule=") + schedule}).at("plans").at(0);
    EXPECT_EQ(plan.at("iteration_time_s"), 33.0) << schedule;
    EXPECT_THAT(plan.at("bubble_fraction").get<double>(), DoubleNear(3.0 / 11.0, 1e-12)) << schedule;
  }
}

TEST(Simulate, MemoryOfEachStageIsThatOfItsLiveMicroBatches) {  // REPORTS M01
  const Workplace place;
  write_chain(place, 4);
  write_experiment(place, 4, "pipelines: 1, stages: 4, micro_batches: 8, warmup: schedule");
  constexpr std::int64_t kMega = 1000 * 1000;
  EXPECT_THAT(activations(simulated(place)), ElementsAre(400 * kMega, 300 * kMega, 200 * kMega, 100 * kMega));
  EXPECT_THAT(activations(simulated(place, {"plan.schedule=gpipe"})), testing::Each(800 * kMega));
  const std::string stages = "plan.stages=[[n0], [n1], [n2], [n3]]";
  simulated(place, {stages, "plan.memory_limit=400 MB"});
  const Outcome refused = place.run({"simulate", "e.yaml", "--set", stages, "--set", "plan.memory_limit=350 MB"});
  expect_one_error(place, refused, 3, {"stage 0 of pipeline 0", "400000000 bytes"});
}

TEST(Simulate, SchedulesThatNeverFlushKeepVersionsOfTheWeights) {  // REPORTS M01
  const Workplace place;
  write_chain(place, 4, ", parameters: 10 MB");
  write_experiment(place, 4, "pipelines: 1, stages: 4, micro_batches: 8, warmup: schedule");
  const auto weights = [&](const std::string& schedule) {
    std::vector<std::int64_t> megabytes;
    const json document = simulated(place, {"plan.schedule=" + schedule});
    for (const json& rank : document.at("ranks")) {
      megabytes.push_back(rank.at("peak_memory").at("weights").get<std::int64_t>() / 1000000);
    }
    return megabytes;
  };
  EXPECT_THAT(weights("1f1b"), ElementsAre(10, 10, 10, 10));
  EXPECT_THAT(weights("pipedream"), ElementsAre(40, 30, 20, 10));
  EXPECT_THAT(weights("pipedream-2bw"), ElementsAre(20, 20, 20, 20));
}

TEST(Simulate, DegenerateSizesWork) {  // REPORTS R10
  const Workplace place;
  for (const int stages : {1, 2}) {
    for (const int pipelines : {1, 2}) {
      for (const int micro_batches : {1, 2}) {
        write_chain(place, stages);
        write_experiment(place, stages * pipelines,
                         "pipelines: " + std::to_string(pipelines) + ", stages: " + std::to_string(stages) +
                             ", micro_batches: " + std::to_string(micro_batches));
        const json plan = simulated(place).at("plans").at(0);
        const int rows = 8 / pipelines / micro_batches;
        EXPECT_EQ(plan.at("makespan_s"), 3.0 * rows * (micro_batches + stages - 1)) << stages << pipelines;
      }
    }
  }
}

// Two chunks a device by a plan file: what a planner writes for `devices * 2` devices, dealt in turn.
TEST(Simulate, InterleavedChunksNeedMicroBatchesInGroups) {  // REPORTS R02
  const Workplace place;
  const auto simulate = [&](int devices, int micro_batches) {
    write_chain(place, 2 * devices);
    const std::string m = std::to_string(micro_batches);
    write_experiment(place, 2 * devices,
                     "pipelines: 1, stages: " + std::to_string(2 * devices) + ", micro_batches: " + m);
    expect_done(place, place.run({"plan", "e.yaml", "--overwrite", "-o", "p.yaml", "--set", "data.batch=" + m}));
    std::ifstream in(place / "p.yaml");
    std::string plan{std::istreambuf_iterator<char>(in), {}};
    const auto replace = [&](const std::string& from, const std::string& to) {
      ASSERT_NE(plan.find(from), std::string::npos) << plan;
      plan.replace(plan.find(from), from.size(), to);
    };
    replace("schedule: 1f1b", "schedule: interleaved");
    for (int s = devices; s < 2 * devices; ++s) {
      replace("devices: [" + std::to_string(s) + "]", "devices: [" + std::to_string(s - devices) + "]");
    }
    place.write("p.yaml", plan);
    write_experiment(place, devices, "file: p.yaml");
    return place.run({"simulate", "e.yaml", "--format", "json", "--set", "data.batch=" + m});
  };
  for (const auto& [devices, micro_batches, makespan] : {std::tuple{2, 4, 27.0}, {4, 8, 57.0}}) {
    const Outcome outcome = simulate(devices, micro_batches);
    expect_done(place, outcome);
    // METHODS 2, two operators a device: (m + (p − 1)/v) · 6 s.
    EXPECT_EQ(document(outcome).at("plans").at(0).at("makespan_s"), makespan);
  }
  for (const int micro_batches : {10, 3}) {
    expect_one_error(place, simulate(4, micro_batches), 2,
                     {"micro_batches must be a multiple of 4, not " + std::to_string(micro_batches)});
  }
}

TEST(Simulate, ASlowRankIsSeen) {
  const Workplace place;
  write_chain(place, 2);
  write_experiment(place, 2, "pipelines: 1, stages: 2, micro_batches: 8", "slowdown: {1: 2}\n");
  const json document = simulated(place);
  EXPECT_EQ(document.at("ranks").at(0).at("busy_s"), 24.0);
  EXPECT_EQ(document.at("ranks").at(1).at("busy_s"), 48.0);
  expect_one_error(place, place.run({"simulate", "e.yaml", "--set", "slowdown={2: 2}"}), 2,
                   {"slowdown.2: there is no rank 2, allowed: 0 to 1"});
}

TEST(Simulate, AParameterServerIsForSimulationsOnly) {
  const Workplace place;
  place.write("e.yaml", tiny("plan: {reduction: ps}\n"));
  expect_done(place, place.run({"simulate", "e.yaml", "--ranks", "2"}));
  expect_done(place, place.run({"plan", "e.yaml", "--ranks", "2"}));
  for (const char* command : {"run", "verify", "check"}) {
    expect_one_error(place, place.run({command, "e.yaml"}, {2}), 2,
                     {"plan.reduction: ps is a model of a parameter server for plan and simulate"});
  }
}

}  // namespace
}  // namespace millrace::cli
