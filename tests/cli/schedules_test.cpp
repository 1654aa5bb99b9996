// Schedules that put several stages on a device, and lists of schedules and bucket sizes, as a user asks for them.
#include <fstream>

#include "tests/cli/expect.h"

#include "tests/cli/job.h"

namespace millrace::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

// Ten operators, so that four ranks can hold two stages each.
std::string deep(const std::string& plan) {
  return "name: deep\nmodel: {name: mlp, options: {inputs: 8, hidden: [8, 8, 8, 8], classes: 4}}\ndata: {batch: 32}\n"
         "cluster: {flat: {devices: 4, bandwidth: 10 GB/s, latency: 1 us}}\nplan: " +
         plan + "\n";
}

TEST(Commands, PlanDealsVirtualStages) {
  const Workplace place;
  const std::string experiment =
      place.write("e.yaml", deep("{schedule: {name: interleaved, chunks: 2}, pipelines: 1, micro_batches: 8}"));
  const Outcome outcome = place.run({"plan", experiment, "--format", "json", "-o", "plan.yaml"});
  expect_done(place, outcome);
  const json best = document(outcome).at("plans").at(0);
  EXPECT_EQ(best.at("schedule"), "interleaved");
  const auto stages = best.at("stages").size();
  EXPECT_TRUE(stages == 8 || stages == 4) << stages;  // on four places or on two with two replicas each
  for (std::size_t s = 0; s < stages; ++s) {
    EXPECT_EQ(best.at("stages")[s].at("devices"), best.at("stages")[(s + stages / 2) % stages].at("devices"));
  }
  EXPECT_THAT(text_of(place / "plan.yaml"), HasSubstr("chunks: 2"));

  place.write("again.yaml", deep("{file: plan.yaml}"));
  expect_done(place, place.run({"simulate", "again.yaml"}));
  const Outcome again = place.run({"plan", "again.yaml", "--format", "json"});
  expect_done(place, again);
  const json same = document(again).at("plans").at(0);
  EXPECT_EQ(same.at("iteration_time_s"), best.at("iteration_time_s"));
  EXPECT_EQ(same.at("peak_memory_bytes"), best.at("peak_memory_bytes"));
}

TEST(Commands, PlanTriesAListOfAllSchedules) {
  const Workplace place;
  const std::string experiment = place.write(
      "e.yaml",
      deep("{schedule: [gpipe, 1f1b, hippie, {name: interleaved, chunks: 2}, zb-h1, zb-h2, zb-v, chimera, pipedream, "
           "pipedream-2bw, zb-greedy], pipelines: 1, micro_batches: [4, 6]}"));
  const Outcome outcome = place.run({"plan", experiment, "--format", "json", "--top", "200"});
  expect_done(place, outcome);
  const json plans = document(outcome).at("plans");
  std::vector<std::string> found;
  for (const json& plan : plans) {
    found.push_back(plan.at("schedule"));
    EXPECT_GE(plan.at("iteration_time_s").get<double>(), plans[0].at("iteration_time_s").get<double>());
  }
  for (const char* name : {"1f1b", "interleaved", "zb-h2", "zb-v", "chimera", "zb-greedy"}) {
    EXPECT_THAT(found, testing::Contains(name));
  }
  const Outcome explained = place.run({"plan", experiment, "--explain", "--set", "plan.micro_batches=6"});
  expect_done(place, explained);
  EXPECT_THAT(explained.out, AllOf(HasSubstr("refused:"), HasSubstr("micro_batches must be a multiple of")));
}

TEST(Commands, ASchedulesRuleIsToldWhereNothingElseIsTried) {
  const Workplace place;
  const std::string experiment = place.write(
      "e.yaml", deep("{schedule: {name: interleaved, chunks: 2}, pipelines: 1, stages: 8, micro_batches: 6}"));
  expect_one_error(place, place.run({"simulate", experiment}), 3, {"micro_batches must be a multiple of 4, not 6"});
  const Outcome chunks = place.run({"plan", experiment, "--set", "plan.schedule.chunks=0"});
  expect_one_error(place, chunks, 2, {"plan.schedule.chunks"});
}

TEST(Commands, PlanChoosesAmongBucketSizes) {
  const Workplace place;
  const std::string experiment =
      place.write("e.yaml", deep("{pipelines: 2, stages: 2, micro_batches: 4, bucket_size: auto}"));
  const Outcome outcome = place.run({"plan", experiment, "--explain"});
  expect_done(place, outcome);
  EXPECT_THAT(outcome.out, HasSubstr("chosen by simulation: bucket size: 25.0 MiB"));
  const Outcome list = place.run({"plan", experiment, "--explain", "--set", "plan.bucket_size=[128 B, 1 KiB]"});
  expect_done(place, list);
  EXPECT_THAT(list.out, AllOf(HasSubstr("chosen by simulation: bucket size: "), HasSubstr("KiB")));
  expect_one_error(place, place.run({"plan", experiment, "--set", "plan.bucket_size=[]"}), 2, {"plan.bucket_size"});
}

TEST(Commands, PlanChoosesHowManyWeightGradientsAreDeferred) {
  const Workplace place;
  const std::string experiment =
      place.write("e.yaml", deep("{pipelines: 2, stages: 2, micro_batches: 8, deferred_weights: auto}"));
  const Outcome outcome = place.run({"plan", experiment, "--explain"});
  expect_done(place, outcome);
  EXPECT_THAT(outcome.out, HasSubstr("chosen by simulation: deferred weight gradients: "));
  const std::string given = "plan.deferred_weights=3";
  expect_done(place, place.run({"plan", experiment, "--set", given, "-o", "p.yaml"}));
  EXPECT_THAT(text_of(place / "p.yaml"), HasSubstr("deferred_weights: 3"));
  expect_done(place, place.run({"simulate", place.write("f.yaml", deep("{file: p.yaml}"))}));
  expect_one_error(place, place.run({"plan", experiment, "--set", given, "--set", "plan.schedule=pipedream"}), 2,
                   {"plan.deferred_weights", "pipedream does not flush"});
  expect_one_error(place, place.run({"plan", experiment, "--set", given, "--set", "plan.recompute=all"}), 2,
                   {"plan.deferred_weights", "keep what plan.recompute drops"});
}

}  // namespace
}  // namespace millrace::cli
