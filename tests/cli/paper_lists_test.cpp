// The lists of experiments/paper at a small size: a few workloads of each, held against what the literature claims.
#include <map>

#include "tests/cli/expect.h"

namespace millrace::cli {
namespace {

using nlohmann::json;

// Rows by partitioner of the only workload that `only` names.
std::map<std::string, json> rows(const std::string& list, const std::string& only) {
  const Workplace place;
  const Outcome outcome = place.run({"bench", "planner", "--quiet", "--format", "json", "--only", only, "--data",
                                     MILLRACE_SOURCE_DIR "/experiments/paper/" + list});
  expect_done(place, outcome);
  std::map<std::string, json> rows;
  const json all = document(outcome);
  for (const json& row : all.at("rows")) {
    EXPECT_EQ(row.at("status"), "done") << row.dump();
    rows[row.at("partitioner")] = row;
  }
  return rows;
}

double value(const json& row, const char* column) { return row.at(column).get<double>(); }

// Table 4: order, then cut, against equal cuts: 1.3 x.
TEST(PaperLists, DpAgainstEqualCutsOnABranchingNetwork) {
  const auto by = rows("pipeline_cuts.yaml", "densenet121 4 stages");
  const double dp = value(by.at("dp"), "iteration_time_s");
  EXPECT_GE(value(by.at("parameter_equal"), "iteration_time_s") / dp, 1.3);
  EXPECT_LE(dp, value(by.at("time_equal"), "iteration_time_s"));
}

// Times are simulated, cuts are found by closed forms: a cut by chance may be a little better.
TEST(PaperLists, DpIsNotWorseThanEqualCuts) {
  for (const char* workload : {"resnet50 4 stages", "inception_v3 4 stages", "googlenet 8 stages"}) {
    const auto by = rows("pipeline_cuts.yaml", workload);
    for (const char* baseline : {"layer_equal", "time_equal", "parameter_equal"}) {
      EXPECT_LE(value(by.at("dp"), "iteration_time_s"), 1.02 * value(by.at(baseline), "iteration_time_s"))
          << workload << ", " << baseline;
    }
  }
}

// Table 5: the genetic partition against cuts by layer: iterations 5 to 19 % shorter, 35 % fewer bytes.
TEST(PaperLists, GeneticAgainstLayersOnABranchingNetwork) {
  const auto by = rows("pipeline_cuts.yaml", "googlenet 4 stages");
  EXPECT_LE(value(by.at("genetic"), "iteration_time_s") / value(by.at("layer_equal"), "iteration_time_s"), 0.95);
}

// Table 6: ideal gains of METHODS 6 within two points.
TEST(PaperLists, DeviceAwareReachesTheIdealGain) {
  for (const auto& [speeds, ideal] : {std::pair{"speeds 1 .9 .8 .7", 0.176},
                                      {"speeds 1 .8 .8 .6", 0.25},
                                      {"speeds 1 .7 .7 .5", 0.31},
                                      {"speeds 1 1 1 .5", 0.429}}) {
    const auto by = rows("device_aware.yaml", speeds);
    const double equal = value(by.at("data_parallel"), "iteration_time_s");
    EXPECT_NEAR(1 - value(by.at("device_aware"), "iteration_time_s") / equal, ideal, 0.02) << speeds;
  }
}

// Table 3: the memory-efficient plan is never worse than the fastest.
TEST(PaperLists, HippieAgainstTheFastestPlan) {
  const auto by = rows("memory_efficiency.yaml", "vgg16 on 8");
  EXPECT_GE(value(by.at("hippie"), "objective_value"), value(by.at("dp"), "objective_value"));
  EXPECT_GT(value(by.at("hippie"), "objective_value"), value(by.at("parameter_equal"), "objective_value"));
}

TEST(PaperLists, AThousandOperatorsOnAThousandDevices) {
  EXPECT_EQ(rows("planner_scale.yaml", "layered 1000 on 1024").at("dp").at("devices"), 1024);
}

TEST(PaperLists, AnUnknownWorkloadIsNamed) {
  const Workplace place;
  expect_one_error(place,
                   place.run({"bench", "planner", "--only", "googlenet 5 stages", "--data",
                              MILLRACE_SOURCE_DIR "/experiments/paper/pipeline_cuts.yaml"}),
                   2, {"googlenet 5 stages", "googlenet 4 stages"});
}

}  // namespace
}  // namespace millrace::cli
