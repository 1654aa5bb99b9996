// Where the stages of schedules that share devices go, and what is said to combinations that there are not.
#include "planner/virtual_stages.h"

#include <gmock/gmock.h>

#include "config/document.h"
#include "plan/plan_text.h"
#include "plan/validate.h"
#include "planner/order_costs.h"
#include "planner/simulated_ranking.h"
#include "program/lowering.h"
#include "program/verifier.h"
#include "tests/planner/dealt.h"

namespace millrace::planner {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::Case;
using testing_support::chain;

using Ids = std::vector<int>;

const plan::Candidate& best(const Ranking& ranking) {
  EXPECT_FALSE(ranking.plans.empty()) << ranking.why_not();
  return ranking.plans.at(0);
}

TEST(VirtualStages, ChunksAreDealtInTurn) {
  const Case c(chain(4), {1, 1}, {1, 1, 1, 1}, 2, 4);
  const plan::Candidate found = best(search(dealt_request(c, chosen("interleaved", 2), 4)));
  EXPECT_THAT(devices(found.plan), ElementsAre(Ids{0}, Ids{1}, Ids{0}, Ids{1}));
  EXPECT_THAT(sizes(found.plan), ElementsAre(1, 1, 1, 1));
  EXPECT_EQ(found.plan.schedule_options.at("chunks"), "2");
  EXPECT_EQ(found.report.schedule, "interleaved");
  EXPECT_EQ(found.report.partitioner, "dp");
}

TEST(VirtualStages, ZbVGoesThereAndBack) {
  const Case c(chain(6), {1, 1, 1}, std::vector<double>(6, 1.0), 2, 6);
  const Plan plan = best(search(dealt_request(c, chosen("zb-v"), 6))).plan;
  EXPECT_THAT(devices(plan), ElementsAre(Ids{0}, Ids{1}, Ids{2}, Ids{2}, Ids{1}, Ids{0}));
}

TEST(VirtualStages, ChimeraHasTwoCopiesOfEachStage) {
  const Case c(chain(4), {1, 1}, {1, 1, 1, 1}, 2, 4);
  const Plan plan = best(search(dealt_request(c, chosen("chimera"), 4))).plan;
  ASSERT_EQ(plan.pipelines.size(), 2U);
  EXPECT_THAT(devices(plan, 0), ElementsAre(Ids{0}, Ids{1}));
  EXPECT_THAT(devices(plan, 1), ElementsAre(Ids{1}, Ids{0}));
  for (const Pipeline& pipeline : plan.pipelines) {
    EXPECT_EQ(pipeline.micro_batches, 2);
    EXPECT_DOUBLE_EQ(pipeline.share, 0.5);
    EXPECT_EQ(pipeline.stages[0].ops, plan.pipelines[0].stages[0].ops);
  }
}

TEST(VirtualStages, EveryPipelineHasItsOwnDevices) {
  const Case c(chain(4), {1, 1, 1, 1}, {1, 1, 1, 1}, 4, 4);
  Request request = dealt_request(c, chosen("interleaved", 2), 4);
  request.problem.pipelines = 2;
  const Plan plan = best(search(request)).plan;
  ASSERT_EQ(plan.pipelines.size(), 2U);
  EXPECT_THAT(devices(plan, 0), ElementsAre(Ids{0}, Ids{1}, Ids{0}, Ids{1}));
  EXPECT_THAT(devices(plan, 1), ElementsAre(Ids{2}, Ids{3}, Ids{2}, Ids{3}));
}

TEST(VirtualStages, PlacesMayHaveReplicas) {
  const Case c(chain(4), {1, 1, 1, 0.5}, {1, 1, 1, 1}, 6, 4);
  Request request = dealt_request(c, chosen("interleaved", 2), 4);
  request.problem.stages = 4;
  const Plan plan = best(search(request)).plan;
  EXPECT_THAT(devices(plan), ElementsAre(Ids{0, 1}, Ids{2, 3}, Ids{0, 1}, Ids{2, 3}));
  EXPECT_NEAR(plan.pipelines[0].stages[1].shares[0], 2.0 / 3, 1e-12);  // by speed
}

TEST(VirtualStages, ChunksAreCutByTheirTimes) {
  // Four chunks of 4 s each; equal numbers of operators would be 2 a chunk.
  const Case c(chain(8), {1, 1}, {4, 1, 1, 1, 1, 4, 2, 2}, 1, 4);
  const Plan plan = best(search(dealt_request(c, chosen("interleaved", 2), 4))).plan;
  EXPECT_THAT(sizes(plan), ElementsAre(1, 4, 1, 2));
}

TEST(VirtualStages, TheUsersOwnStagesAreDealtToo) {
  const Case c(chain(4), {1, 1}, {1, 1, 1, 1}, 2, 4);
  Request request = dealt_request(c, chosen("interleaved", 2), 4);
  request.explicit_stages = {{{"n0"}, {"n1"}, {"n2"}, {"n3"}}};
  const plan::Candidate found = best(search(request));
  EXPECT_EQ(found.report.partitioner, "explicit");
  EXPECT_THAT(devices(found.plan), ElementsAre(Ids{0}, Ids{1}, Ids{0}, Ids{1}));
}

std::string refusal(const Request& request) {
  const Ranking ranking = search(request);
  EXPECT_TRUE(ranking.plans.empty());
  return ranking.why_not();
}

TEST(VirtualStages, ARefusalNamesItsRule) {
  const Case c(chain(4), {1, 1}, {1, 1, 1, 1}, 2, 6);
  EXPECT_THAT(refusal(dealt_request(c, chosen("interleaved", 2), 3)),
              AllOf(HasSubstr("not offered"), HasSubstr("micro_batches must be a multiple of 2, not 3")));
  EXPECT_THAT(refusal(dealt_request(c, chosen("interleaved", 3), 4)),
              AllOf(HasSubstr("more stages than operators"), HasSubstr("6 stages of 4 operators")));
  EXPECT_THAT(refusal(dealt_request(c, chosen("chimera"), 3)), HasSubstr("micro_batches must be even"));
  Request odd = dealt_request(c, chosen("zb-v"), 4);
  odd.problem.stages = 3;
  EXPECT_THAT(refusal(odd), HasSubstr("zb-v puts 2 stages on each place; 3 are no multiple"));
  Request asynchronous = dealt_request(c, chosen("pipedream-2bw"), 1);
  asynchronous.problem.stages = 2;
  EXPECT_THAT(refusal(asynchronous), HasSubstr("m >= p"));
}

TEST(VirtualStages, ALimitThatOneCutKeepsIsKept) {
  Case c(chain(64), {1, 1}, std::vector<double>(64, 1.0), 2, 4);
  const plan::Candidate free = best(search(dealt_request(c, chosen("interleaved", 2), 4)));
  Request request = dealt_request(c, chosen("interleaved", 2), 4);
  request.problem.memory_limit = Bytes(free.report.peak_memory_bytes);
  EXPECT_EQ(best(search(request)).plan, free.plan);
  request.problem.memory_limit = Bytes(8);
  const Ranking none = search(request);
  EXPECT_TRUE(none.plans.empty());
  EXPECT_THAT(none.why_not(),
              AllOf(HasSubstr("does not fit in memory"), HasSubstr("stage 0 of pipeline 0 and stage 2")));
}

TEST(VirtualStages, PlansReadBackAndAreValid) {
  const Case c(chain(8), {1, 1, 1, 1}, std::vector<double>(8, 1.0), 4, 4);
  for (const ScheduleChoice& schedule : {chosen("interleaved", 2), chosen("zb-v"), chosen("chimera")}) {
    Request request = dealt_request(c, schedule, 4);
    request.problem.pipelines.reset();
    for (const plan::Candidate& candidate : search(request).plans) {
      const plan::Limits limits{.devices = 4, .batch = c.problem.batch, .several_stages = true};
      EXPECT_TRUE(plan::validate(candidate.plan, c.graph, limits).empty()) << schedule.name;
      config::Problems problems;
      const std::string text = plan::to_yaml(candidate.plan, c.graph);
      const config::Node document = config::load_text(text, nullptr, problems);
      EXPECT_EQ(plan::read_plan(document, c.graph, problems), candidate.plan) << text;
      EXPECT_TRUE(problems.empty()) << text;
      EXPECT_EQ(text.find("chunks: 2") != std::string::npos, schedule.name == "interleaved") << text;
    }
  }
}

class EveryPartitioner : public testing::TestWithParam<std::string> {};

TEST_P(EveryPartitioner, HasItsStagesDealtAndVerified) {
  const Case c(chain(24), {1, 1, 1, 1}, std::vector<double>(24, 1.0), 4, 4);
  for (const ScheduleChoice& schedule : {chosen("interleaved", 2), chosen("zb-v"), chosen("chimera")}) {
    Request request = dealt_request(c, schedule, 4, GetParam());
    if (request.partitioners[0].options.has("time_limit")) {
      request.partitioners[0].options.set("time_limit", Seconds(3600));
    }
    request.problem.pipelines = 2;
    if (GetParam() == "data_parallel") request.problem.pipelines = 4;  // its one stage a pipeline
    const Ranking ranking = search(request);
    if (ranking.plans.empty()) {
      EXPECT_THAT(ranking.why_not(), testing::AnyOf(HasSubstr("not offered"), HasSubstr("even number of stages")))
          << schedule.name;
      continue;
    }
    for (const plan::Candidate& candidate : ranking.plans) {
      EXPECT_EQ(candidate.report.partitioner, GetParam());
      const Program program = lower(c.graph, candidate.plan, fitted_order(candidate.plan, c.problem), c.problem.batch);
      EXPECT_TRUE(verify(c.graph, program).empty()) << schedule.name;
    }
  }
}

std::vector<std::string> partitioner_names() {
  std::vector<std::string> names;
  for (const partitioners::Entry& entry : partitioners::registry()) {
    if ((entry.capabilities & partitioners::kSharedDevices) == 0) names.push_back(entry.name);
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(Registry, EveryPartitioner, testing::ValuesIn(partitioner_names()),
                         [](const auto& info) { return info.param; });

TEST(VirtualStages, TheBestOfAllSchedulesIsKept) {
  // METHODS 2: tF = 1, tB = 2, p = 4, m = 8: 1f1b 33, interleaved with 2 chunks 28.5, zb-h2 and zb-v less.
  const Case c(chain(8), {1, 1, 1, 1}, std::vector<double>(8, 1.5), 1, 8);
  Request request = dealt_request(c, chosen("1f1b"), 8);
  request.schedules.clear();
  request.top = 64;
  request.judged_again = true;
  for (const schedules::Entry& entry : schedules::registry()) {
    if ((entry.capabilities & schedules::kSynchronous) != 0) request.schedules.push_back(chosen(entry.name));
  }
  request.problem.stages.reset();
  Ranking ranking = search(request);
  rank_by_simulation(c.problem, ranking.plans, {.deeper_warmup = false});
  std::map<std::string, double> times;
  for (const plan::Candidate& candidate : ranking.plans) {
    times.try_emplace(candidate.report.schedule, candidate.report.iteration_time_s);
  }
  EXPECT_NEAR(times.at("interleaved"), 28.5, 1e-9);
  EXPECT_EQ(ranking.plans[0].report.iteration_time_s, ranking.plans[0].report.makespan_s);
  for (const auto& [name, time] : times) EXPECT_GE(time, ranking.plans[0].report.iteration_time_s) << name;
  EXPECT_LT(ranking.plans[0].report.iteration_time_s, 28.5);
}

}  // namespace
}  // namespace millrace::planner
