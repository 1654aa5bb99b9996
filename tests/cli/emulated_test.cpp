// Emulated clusters: real ranks and messages reproduce the simulator, schedule by schedule, and say what they are.
#include <cmath>

#include "storage/file.h"
#include "tests/cli/expect.h"

namespace millrace::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Stages of unlike length, tensors that take time to send, parameters that take time to reduce.
std::string graph(int operators) {
  std::string text = "millrace_graph: 1\nname: chain\noperators:\n";
  for (int i = 0; i < operators; ++i) {
    text += "  - {name: o" + std::to_string(i) + ", kind: cost, inputs: [" +
            (i == 0 ? "" : "o" + std::to_string(i - 1)) + "], forward: " + std::to_string(4 + i % 3) +
            " ms, backward_input: " + std::to_string(4 + i % 2) + " ms, backward_weight: " + std::to_string(4 + i % 3) +
            " ms, parameters: " + std::to_string(1 + i % 4) + " MiB, output: 512 KiB}\n";
  }
  return text;
}

std::string experiment(const std::string& plan, int batch) {
  return "name: e\nmodel: {file: g.yaml}\ndata: {batch: " + std::to_string(batch) +
         "}\ncluster: {levels: [{count: 4, bandwidth: 2 GB/s, latency: 50 us}, {count: 4, bandwidth: 1 GB/s, latency: "
         "100 us}], emulated: true}\nplan: " +
         plan + "\ntrain: {iterations: 5}\n";
}

json run(const std::string& plan, int batch, const std::vector<std::string>& more = {}) {
  const Workplace place;
  place.write("g.yaml", graph(32));
  place.write("e.yaml", experiment(plan, batch));
  std::vector<std::string> words{"run", "e.yaml", "--quiet", "--format", "json"};
  words.insert(words.end(), more.begin(), more.end());
  const Outcome outcome = place.run(words, {.ranks = 16});
  expect_done(place, outcome);
  return document(outcome);
}

double iteration_time(const json& run) { return run.at("measured").at("iteration_time_s").get<double>(); }

// In model time, which the load of this machine does not change; by the real clock unless that load was in the way.
void expect_as_simulated(const json& run, const std::string& what) {
  const double simulated = run.at("plans").at(0).at("iteration_time_s").get<double>();
  EXPECT_NEAR(iteration_time(run) / simulated, 1.0, 0.05) << what;
  const json& emulation = run.at("emulation");
  if (emulation.at("disturbed").get<bool>()) return;
  EXPECT_NEAR(emulation.at("real_iteration_time_s").get<double>() / simulated, 1.0, 0.05) << what;
}

std::string plan(const std::string& schedule, int pipelines, int stages, int micro_batches) {
  return "{partitioner: dp, schedule: " + schedule + ", pipelines: " + std::to_string(pipelines) +
         ", stages: " + std::to_string(stages) + ", micro_batches: " + std::to_string(micro_batches) +
         ", warmup: schedule}";
}

TEST(Emulated, SixteenRanksReproduceTheSimulator) {
  expect_as_simulated(run(plan("1f1b", 1, 16, 16), 16), "1f1b, 16 stages");
  expect_as_simulated(run(plan("gpipe", 4, 4, 6), 24), "gpipe, 4 x 4");
  expect_as_simulated(run(plan("hippie", 2, 4, 8), 32), "hippie, 2 x 4 with 2 replicas");
  expect_as_simulated(run(plan("zb-h1", 2, 8, 8), 16), "zb-h1, 2 x 8");
  expect_as_simulated(run(plan("1f1b", 4, 4, 8), 32, {"--set", "plan.deferred_weights=3"}), "1f1b, 4 x 4, deferred");
}

TEST(Emulated, TheRunSaysThatItIsEmulated) {
  const Workplace place;
  place.write("g.yaml", graph(4));
  place.write("e.yaml",
              "name: e\nmodel: {file: g.yaml}\ndata: {batch: 4}\ncluster: {flat: {devices: 2, bandwidth: 1 GB/s}, "
              "emulated: true}\nplan: {stages: 2, micro_batches: 4}\ntrain: {iterations: 3}\n");
  const Outcome outcome = place.run({"run", "e.yaml", "--quiet", "--format", "json"}, {.ranks = 2});
  expect_done(place, outcome);
  const json all = document(outcome);
  EXPECT_EQ(all.at("kind"), "emulated");
  EXPECT_TRUE(all.contains("emulation_error"));
  EXPECT_FALSE(all.contains("prediction_error")) << "the emulated error is not that of the simulator on hardware";
  EXPECT_FALSE(all.contains("final_loss")) << "nothing was computed";
  // The smallest kernel, the first stage's forward, takes 4 + 5 ms in the model and 3 ms here.
  EXPECT_NEAR(all.at("emulation").at("time_dilation").get<double>(), 3.0 / 9, 1e-9);

  const storage::File file = storage::File::open(place / "results/e.h5");
  EXPECT_EQ(file.text("kind"), "emulated");
  for (const double loss : file.table("iterations").column_reals("loss")) EXPECT_TRUE(std::isnan(loss));

  const Outcome text = place.run({"run", "e.yaml", "--quiet", "--overwrite"}, {.ranks = 2});
  expect_done(place, text);
  EXPECT_THAT(text.out, testing::AllOf(HasSubstr("emulated"), testing::Not(HasSubstr("loss"))));
}

TEST(Emulated, ASlowerRankIsSlowerInBoth) {
  const json plain = run(plan("1f1b", 4, 4, 4), 16);
  const json slow = run(plan("1f1b", 4, 4, 4), 16, {"--set", "slowdown={5: 2.0}"});
  expect_as_simulated(slow, "rank 5 at half the speed");
  EXPECT_GT(iteration_time(slow), 1.3 * iteration_time(plain));
}

TEST(Emulated, WhatCannotBeEmulatedIsRefused) {
  const Workplace place;
  place.write("g.yaml", graph(4));
  place.write("e.yaml",
              "name: e\nmodel: {file: g.yaml}\ndata: {batch: 4}\ncluster: {flat: {devices: 2, bandwidth: 1 GB/s}, "
              "emulated: true}\n");
  expect_one_error(place, place.run({"run", "e.yaml", "--set", "simulation.contention=dynamic"}, {.ranks = 2}), 2,
                   {"is emulated", "contention: fixed"});
  expect_one_error(place, place.run({"verify", "e.yaml"}, {.ranks = 2}), 2, {"is emulated"});
}

// Devices of unequal speed: shares and cuts that follow the speeds against equal shares of the batch.
TEST(Emulated, DeviceAwareGroupsAgainstEqualShares) {
  double gain = 0;
  for (const char* speeds : {"1-8-8-6", "1-7-7-5"}) {
    double seconds[2] = {};
    for (const char* partitioner : {"device_aware", "data_parallel"}) {
      const Workplace place;
      const Outcome outcome =
          place.run({"run", std::string(MILLRACE_SOURCE_DIR "/experiments/paper/device_aware_") + speeds + ".yaml",
                     "--quiet", "--format", "json", "--set", std::string("plan.partitioner=") + partitioner},
                    {.ranks = 4});
      expect_done(place, outcome);
      const json all = document(outcome);
      expect_as_simulated(all, speeds);
      seconds[partitioner[1] == 'a'] = iteration_time(all);
    }
    gain += (1 - seconds[0] / seconds[1]) / 2;
  }
  EXPECT_GE(gain, 0.21);
}

// A gpt whose operators are split over the devices of each replica; with `positions`, what stands between products is
// in parts too, so that there are all-gathers and reduce-scatters.
std::string tensor_experiment(const std::string& plan, bool positions, int devices) {
  std::string names = "d";
  for (int i = 1; i < devices; ++i) names += ", d";
  return "name: e\nmodel: {name: gpt, options: {layers: 4, width: 64, heads: 4, sequence: 32, vocabulary: 64}}\n"
         "data: {batch: 16}\ncluster:\n  emulated: true\n"
         "  devices: {d: {flops: {fp32: 20 GFLOP/s}, bandwidth: 20 GB/s}}\n"
         "  nodes: [{count: 1, devices: [" +
         names + "], link: {bandwidth: 2 GB/s, latency: 20 us}}]\nplan:\n" + plan +
         "  annotations:\n    - {tensor: \"blocks.*.attention.qkv.weight\", split: 0}\n"
         "    - {tensor: \"blocks.*.mlp.up.weight\", split: 0}\n" +
         (positions ? "    - {op: \"blocks.*.add?\", split: 1}\n" : "") + "train: {iterations: 4}\n";
}

struct TensorRun {
  double simulated = 0, emulated = 0;                  // an iteration
  double exposed_simulated = 0, exposed_emulated = 0;  // waits for ranks of the replica, the mean over ranks
};

TensorRun tensor_run(const std::string& plan, bool positions, int devices) {
  const Workplace place;
  place.write("e.yaml", tensor_experiment(plan, positions, devices));
  const Outcome simulated = place.run({"simulate", "e.yaml", "--format", "json"});
  expect_done(place, simulated);
  const Outcome emulated = place.run({"run", "e.yaml", "--quiet", "--format", "json"}, {.ranks = devices});
  expect_done(place, emulated);
  TensorRun run;
  const json prediction = document(simulated);
  run.simulated = prediction.at("plans").at(0).at("iteration_time_s").get<double>();
  run.emulated = iteration_time(document(emulated));
  for (const json& rank : prediction.at("ranks")) {
    run.exposed_simulated += rank.at("exposed_s").at("tensor").get<double>() / devices;
  }
  const storage::File file = storage::File::open(place / "results/e.h5");
  for (const double seconds : file.table("ranks").column_reals("exposed_tensor_s")) {
    run.exposed_emulated += seconds / 4 / devices;
  }
  return run;
}

TEST(Emulated, TensorParallelStagesReproduceTheSimulator) {
  const struct {
    std::string plan;
    bool positions;
    int devices;
  } cases[] = {
      {"  schedule: gpipe\n  stages: 1\n  tensor_parallel: 4\n  micro_batches: 2\n", false, 4},
      {"  schedule: 1f1b\n  stages: 2\n  tensor_parallel: 2\n  micro_batches: 4\n", false, 4},
      {"  schedule: zb-h1\n  stages: 2\n  tensor_parallel: 4\n  micro_batches: 4\n", false, 8},
      {"  schedule: hippie\n  pipelines: 2\n  stages: 2\n  tensor_parallel: 2\n  micro_batches: 2\n", true, 8},
      {"  schedule: 1f1b\n  stages: 1\n  tensor_parallel: 4\n  micro_batches: 2\n  recompute: all\n", true, 4}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.plan);
    const TensorRun run = tensor_run(c.plan, c.positions, c.devices);
    EXPECT_NEAR(run.emulated / run.simulated, 1.0, 0.01);
    EXPECT_GT(run.exposed_simulated, 0);
    EXPECT_NEAR(run.exposed_emulated / run.exposed_simulated, 1.0, 0.05);
  }
}

// Under --full: every schedule that there is.
TEST(EmulatedFull, EverySchedule) {
  const Workplace place;
  const Outcome list = place.run({"schedules", "--format", "json"});
  for (const json& row : document(list)) {
    const std::string name = row.at("name").get<std::string>();
    expect_as_simulated(run(plan(name, 4, 4, 8), 32), name + ", 4 x 4");
    expect_as_simulated(run(plan(name, 1, 4, 16), 64), name + ", 4 replicas");
  }
}

}  // namespace
}  // namespace millrace::cli
