// The islands of a genetic search on the ranks of a job: one plan, however many ranks there are.
#include <fstream>

#include "tests/cli/expect.h"

#include "tests/cli/job.h"

namespace millrace::cli {
namespace {

// A wide graph for four devices, whatever the job's size.
const std::string kExperiment =
    "name: islands\n"
    "model: {name: synthetic, options: {shape: layered, operators: 60, width: 6}}\n"
    "data: {batch: 16}\n"
    "cluster: {flat: {devices: 4, bandwidth: 1 GB/s}}\n"
    "plan:\n"
    "  pipelines: 1\n"
    "  stages: 4\n"
    "  micro_batches: 4\n"
    "  partitioner: {name: genetic, stale_generations: 10}\n";

TEST(Islands, OneTwoAndThreeRanksWriteTheSamePlan) {
  const Workplace place;
  place.write("e.yaml", kExperiment);
  for (const int ranks : {0, 1, 2, 3}) {
    const std::string file = "plan" + std::to_string(ranks) + ".yaml";
    const Outcome outcome = place.run({"plan", "e.yaml", "-o", file, "--format", "json"}, {ranks});
    expect_done(place, outcome);
    const nlohmann::json plans = document(outcome).at("plans");
    ASSERT_EQ(plans.size(), 1U);
    EXPECT_EQ(plans[0].at("partitioner"), "genetic");
    EXPECT_EQ(plans[0].at("stopped_by"), "complete");
    EXPECT_EQ(text_of(place / file), text_of(place / "plan0.yaml")) << ranks << " ranks";
  }
}

TEST(Islands, AllRanksStopWhenTheTimeIsUp) {
  const Workplace place;
  place.write("e.yaml", kExperiment);
  const Outcome outcome = place.run({"plan", "e.yaml", "--format", "json", "--time-limit", "200 ms", "--set",
                                     "plan.partitioner={name: genetic, stale_generations: 1000000}"},
                                    {3});
  expect_done(place, outcome);
  EXPECT_EQ(document(outcome).at("plans")[0].at("stopped_by"), "time");
}

}  // namespace
}  // namespace millrace::cli
