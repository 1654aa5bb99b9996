// Measured costs as users meet them: `profile`, `costs:`, and what a run tells of them.
#include <fstream>

#include "record/profile_file.h"
#include "storage/file.h"
#include "tests/cli/expect.h"

namespace millrace::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

const std::vector<std::string> kOperators{"linear0", "relu0", "linear1", "relu1", "linear2", "loss"};

// One second forward and one for each half of backward, for 8 rows; linear layers only have the second half.
cost::Profile by_hand(const std::string& digest) {
  cost::Profile profile;
  profile.model = "mlp";
  profile.graph_digest = digest;
  profile.cpu = "none";
  profile.kernels = "reference";
  profile.precision = "fp32";
  cost::MeasuredSize size;
  size.rows = 8;
  for (const std::string& name : kOperators) {
    profile.operators.push_back({name, Bytes(0), {}});
    const Seconds second_half(name.starts_with("linear") ? 2.0 : 0.0);
    size.operators.push_back({{Seconds(1), {}}, {Seconds(1), {}}, {second_half, {}}});
  }
  profile.sizes.push_back(size);
  return profile;
}

std::string digest_of(const Workplace& place) {
  place.write("digest.yaml", tiny());
  expect_done(place, place.run({"plan", "digest.yaml", "-o", "plan.yaml", "--overwrite"}));
  const std::string plan = text_of(place / "plan.yaml");
  const auto at = plan.find("graph_digest: ") + std::string("graph_digest: ").size();
  std::string digest = plan.substr(at, plan.find('\n', at) - at);
  std::erase(digest, '"');
  return digest;
}

json simulated(const Workplace& place, const std::string& speeds) {
  place.write("e.yaml", tiny("cluster: {flat: {devices: 2, bandwidth: unlimited}, speeds: " + speeds +
                             "}\ncosts: p.h5\n"
                             "plan: {schedule: gpipe, pipelines: 1, micro_batches: 4, "
                             "stages: [[linear0, relu0, linear1], [relu1, linear2, loss]]}\n"
                             "train: {kernels: reference}\n"));
  const Outcome outcome = place.run({"simulate", "e.yaml", "--format", "json"});
  expect_done(place, outcome);
  return document(outcome).at("plans").at(0);
}

TEST(Profiles, WrittenByHandGiveExactTimes) {
  const Workplace place;
  record::write_profile(place / "p.h5", storage::Existing::refuse, by_hand(digest_of(place)), {});
  // 3 + 7 s and 3 + 5 s a micro-batch of 8: sum + (m - 1)(max F + max B) = 18 + 3 x (3 + 7).
  const json equal = simulated(place, "[1, 1]");
  EXPECT_DOUBLE_EQ(equal.at("makespan_s").get<double>(), 48);
  EXPECT_DOUBLE_EQ(equal.at("stages").at(0).at("forward_s").get<double>(), 3);
  EXPECT_DOUBLE_EQ(equal.at("stages").at(0).at("backward_s").get<double>(), 7);
  EXPECT_DOUBLE_EQ(equal.at("stages").at(1).at("backward_s").get<double>(), 5);
  // The first device at half speed: 6 + 14 and 3 + 5.
  EXPECT_DOUBLE_EQ(simulated(place, "[0.5, 1]").at("makespan_s").get<double>(), 28 + 3 * 20);
}

TEST(Profiles, OfOtherNetworksAndMachinesAreRefused) {
  const Workplace place;
  const auto refused = [&](const std::string& more, const std::vector<std::string>& words) {
    place.write("e.yaml", tiny("costs: p.h5\n" + more));
    expect_one_error(place, place.run({"plan", "e.yaml"}), 2, words);
  };
  refused("", {"e.yaml:4:8", "no such file 'p.h5'", "analytic, measured", "millrace profile EXP.yaml -o p.h5"});
  place.write("p.h5", "text");
  refused("", {"p.h5"});
  std::filesystem::remove(place / "p.h5");
  storage::File::make(place / "p.h5").close();
  refused("", {"is no measured profile", "millrace profile makes them"});
  cost::Profile profile = by_hand(digest_of(place));
  const auto keep = [&] { record::write_profile(place / "p.h5", storage::Existing::replace, profile, {}); };
  keep();
  const std::string again = "millrace profile EXP.yaml -o ";
  refused("train: {kernels: reference}\n", {"e.yaml:4:8: costs", "another processor (none;", again});
  refused("", {"kernels reference, this experiment uses onednn", again});
  profile.graph_digest = "0";
  keep();
  refused("", {"other shapes or operators than model mlp", again});
  profile.operators[2].name = "linear9";
  keep();
  refused("", {"operator 'linear1' of model mlp is not in it", again});
}

TEST(Profiles, ARealOneIsCompleteAndRunsTakeIt) {
  const Workplace place;
  place.write("e.yaml", tiny("train: {iterations: 4}\nplan: {stages: 2, pipelines: 1, micro_batches: 4}\n"));
  const Outcome profile = place.run({"profile", "e.yaml", "-o", "p.h5", "--format", "json"}, {2});
  expect_done(place, profile);
  const json all = document(profile);
  ASSERT_EQ(all.at("operators").size(), kOperators.size());
  ASSERT_EQ(all.at("sizes").size(), 4U);  // 1, 2, 4 and 8 rows
  for (std::size_t op = 0; op < kOperators.size(); ++op) {
    const json& one = all.at("operators").at(op);
    EXPECT_EQ(one.at("name"), kOperators[op]);
    ASSERT_EQ(one.at("times").size(), 4U);
    for (const json& times : one.at("times")) EXPECT_GT(times.at("forward_s").get<double>(), 0);
  }
  EXPECT_EQ(all.at("job").at("speeds").size(), 2U);
  EXPECT_GT(all.at("job").at("links").at("within_host").at("bandwidth_bytes_per_s").get<double>(), 0);
  EXPECT_EQ(record::read_profile(place / "p.h5").job.speeds.size(), 2U);
  expect_one_error(place, place.run({"profile", "e.yaml", "-o", "p.h5"}), 2, {"p.h5", "--overwrite"});

  const Outcome run = place.run({"run", "e.yaml", "--set", "costs=p.h5", "--format", "json"}, {2});
  expect_done(place, run);
  EXPECT_THAT(run.err,
              AllOf(HasSubstr("6 operators at 4 micro-batch sizes, read from"), HasSubstr("speeds of the ranks")));
  const json ran = document(run);
  EXPECT_EQ(ran.at("costs").at("source"), "profile");
  EXPECT_EQ(ran.at("costs").at("speeds").size(), 2U);
  ASSERT_EQ(ran.at("stage_times").size(), 2U);
  for (const json& stage : ran.at("stage_times")) {
    for (const char* kind : {"measured", "predicted"}) {
      EXPECT_GT(stage.at(kind).at("forward_s").get<double>(), 0) << kind;
      EXPECT_GT(stage.at(kind).at("backward_s").get<double>(), 0) << kind;
    }
  }
  EXPECT_EQ(storage::File::open(place / "results/tiny.h5").text("costs"), "profile");
}

TEST(Profiles, UnequalRanksGetSharesBySpeed) {
  const Workplace place;
  // Ten times slower: no disturbance of this machine makes up for it.
  place.write("e.yaml", tiny("costs: measured\nslowdown: {1: 10}\ntrain: {iterations: 2}\n"
                             "plan: {stages: 1, pipelines: 1, micro_batches: 1}\n"));
  const Outcome run = place.run({"run", "e.yaml", "--format", "json"}, {2});
  expect_done(place, run);
  const json ran = document(run);
  EXPECT_EQ(ran.at("costs").at("source"), "measured");
  const json& shares = ran.at("plans").at(0).at("stages").at(0).at("shares");
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_GT(shares.at(0).get<double>(), shares.at(1).get<double>());
  EXPECT_GT(ran.at("costs").at("speeds").at(0).get<double>(), ran.at("costs").at("speeds").at(1).get<double>());

  // One process that plans for two: measured once, but for the slowdown they are alike.
  const Outcome alone = place.run({"plan", "e.yaml", "--ranks", "2", "--format", "json"});
  expect_done(place, alone);
  const json planned = document(alone);
  EXPECT_NEAR(planned.at("plans").at(0).at("stages").at(0).at("shares").at(0).get<double>(), 10.0 / 11, 1e-9);
}

// Borders cost the operators beside them, which only the plan knows.
TEST(Profiles, ARunMeasuresAgainAsItsPlanCutsTheNetwork) {
  const Workplace place;
  place.write("e.yaml", tiny("costs: measured\ntrain: {iterations: 2}\n"
                             "plan: {stages: 2, pipelines: 1, micro_batches: 2}\n"));
  const Outcome cut = place.run({"run", "e.yaml"}, {2});
  expect_done(place, cut);
  EXPECT_THAT(cut.err, HasSubstr("costs: measured again, cut into the plan's 2 stages; in"));
  const Outcome whole =
      place.run({"run", "e.yaml", "--overwrite", "--set", "plan.stages=1", "--set", "plan.pipelines=2"}, {2});
  expect_done(place, whole);
  EXPECT_THAT(whole.err, Not(HasSubstr("measured again")));
}

TEST(Profiles, MeasuredAloneAndNotWhereNothingIsMeasured) {
  const Workplace place;
  place.write("e.yaml", tiny("costs: measured\n"));
  const Outcome plan = place.run({"plan", "e.yaml"});
  expect_done(place, plan);
  EXPECT_THAT(plan.err, HasSubstr("costs: 6 operators at"));
  expect_one_error(place, place.run({"shard", "e.yaml"}), 2, {"e.yaml:4:8: costs", "costs: p.h5"});
  place.write("emulated.yaml",
              tiny("costs: measured\ncluster: {flat: {devices: 1, bandwidth: unlimited}, emulated: true}\n"));
  expect_one_error(place, place.run({"run", "emulated.yaml"}), 2, {"emulated cluster", "costs: p.h5"});
  const Outcome table = place.run({"profile", "e.yaml", "--rows", "4,2"});
  expect_done(place, table);
  EXPECT_THAT(table.out, AllOf(HasSubstr("mlp on "), HasSubstr("backward weight"), HasSubstr("linear0"),
                               HasSubstr("one micro-batch of 4 rows"), HasSubstr("the whole network")));
}

}  // namespace
}  // namespace millrace::cli
