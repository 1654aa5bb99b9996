// The search over partitioners, schedules and micro-batches.
#include "planner/search.h"

#include <tuple>

#include <gmock/gmock.h>

#include "base/errors.h"
#include "partitioners/registry.h"
#include "plan/assignment.h"
#include "planner/tables.h"
#include "tests/plan/table_cost.h"

namespace millrace::planner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::Case;
using testing_support::chain;

constexpr Seconds kNoHurry{3600};

Request request(const Case& c, const std::vector<std::string>& names) {
  Request made;
  made.problem = c.problem;
  for (const std::string& name : names) {
    made.partitioners.push_back({name, config::defaults(partitioners::by_name(name).options)});
  }
  return made;
}

TEST(Search, RanksPlansOfAllPartitionersBestFirst) {
  Case c(chain(8), {1, 1, 1, 1}, {1, 1, 1, 5, 1, 1, 1, 1}, 16, 1, 0, 1000);
  Request r = request(c, {"dp", "layer_equal", "time_equal"});
  r.problem.pipelines = 1;
  r.problem.stages = 4;
  r.micro_batches = {4};
  const Ranking ranking = search(r);
  ASSERT_EQ(ranking.plans.size(), 3U);
  EXPECT_EQ(ranking.plans[0].report.partitioner, "dp");
  EXPECT_LE(ranking.plans[0].report.iteration_time_s, ranking.plans[1].report.iteration_time_s);
  EXPECT_LE(ranking.plans[1].report.iteration_time_s, ranking.plans[2].report.iteration_time_s);
  EXPECT_EQ(ranking.why_not(), "");
  EXPECT_EQ(plans_table(ranking.plans).rows.size(), 3U);
  EXPECT_EQ(stages_table(ranking.plans[0].report, c.graph).rows.size(), 4U);
  EXPECT_EQ(memory_table(ranking.plans[0].report).rows.size(), 4U);
}

TEST(Search, AutomaticMicroBatchesAreTheOnesThatFillThePipeline) {
  // Time per row is constant: more micro-batches only shrink the bubble, up to one row each.
  Case c(chain(4), {1, 1, 1, 1}, {1, 1, 1, 1}, 32);
  Request r = request(c, {"dp"});
  r.problem.pipelines = 1;
  r.problem.stages = 4;
  EXPECT_THAT(automatic_micro_batches(r.problem), ElementsAre(1, 2, 4, 8, 16, 32));
  EXPECT_EQ(search(r).plans.at(0).report.micro_batches, 32);
  r.problem.pipelines = 2;
  r.problem.stages = 2;
  EXPECT_THAT(automatic_micro_batches(r.problem), ElementsAre(1, 2, 4, 8, 16));
}

TEST(Search, KeepsTheBestFew) {
  Case c(chain(4), {1, 1}, {1, 1, 1, 1}, 8);
  Request r = request(c, {"dp", "layer_equal"});
  r.top = 3;
  EXPECT_EQ(search(r).plans.size(), 3U);
}

TEST(Search, BothSchedulesAreTried) {
  Case c(chain(4), {1, 1}, {1, 1, 1, 1}, 8);
  Request r = request(c, {"layer_equal"});
  r.schedules = {ScheduleChoice::of("gpipe"), ScheduleChoice::of("1f1b")};
  r.problem.pipelines = 1;
  r.problem.stages = 2;
  r.micro_batches = {4};
  const Ranking ranking = search(r);
  ASSERT_EQ(ranking.plans.size(), 2U);
  EXPECT_NE(ranking.plans[0].plan.schedule, ranking.plans[1].plan.schedule);
}

TEST(Search, AnInfeasibleLimitNamesTheLeastThatFits) {
  Case c(chain(8), {1, 1}, std::vector<double>(8, 1.0), 8);
  Request r = request(c, {"layer_equal", "time_equal"});
  r.problem.memory_limit = Bytes(8);
  const Ranking none = search(r);
  EXPECT_TRUE(none.plans.empty());
  ASSERT_TRUE(none.least_memory);
  EXPECT_THAT(none.why_not(), HasSubstr("no plan fits"));
  EXPECT_THAT(none.why_not(), HasSubstr(fmt::format("({} bytes)", none.least_memory->limit.value())));
  EXPECT_THAT(none.why_not(), HasSubstr("stage 0"));
  r.problem.memory_limit = none.least_memory->limit;
  EXPECT_FALSE(search(r).plans.empty());
}

// REPORTS M02: whatever the limit that was too small, the one that is named is enough, and one byte less is not.
TEST(Search, TheLeastMemoryIsTheLeast) {
  Case c(chain(7), {1, 1, 1}, {1, 5, 1, 1, 2, 1, 3}, 6);
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{"dp"}, {"layer_equal"}, {"time_equal", "dp"}, {"device_aware"}}) {
    Request r = request(c, names);
    r.patience = kNoHurry;
    std::optional<Bytes> named;
    for (const std::int64_t limit : {1, 10, 20}) {
      r.problem.memory_limit = Bytes(limit);
      const Ranking none = search(r);
      ASSERT_TRUE(none.plans.empty()) << limit;
      ASSERT_TRUE(none.least_memory && none.least_memory->minimal);
      EXPECT_EQ(named.value_or(none.least_memory->limit), none.least_memory->limit) << limit;
      named = none.least_memory->limit;
    }
    r.problem.memory_limit = named;
    EXPECT_FALSE(search(r).plans.empty());
    r.problem.memory_limit = *named - 1_B;
    EXPECT_TRUE(search(r).plans.empty());
  }
}

TEST(Search, ALeastMemoryIsNamedWhereDevicesAreTooSmall) {
  Case c(chain(4), {1, 1}, {1, 1, 1, 1}, 8);
  c.cluster = testing_support::machine({1, 1}, {8_B, 16_B});
  Request r = request(c, {"dp"});
  r.patience = kNoHurry;
  const Ranking none = search(r);
  ASSERT_TRUE(none.least_memory && none.least_memory->minimal);
  c.cluster = testing_support::machine({1, 1}, {none.least_memory->limit, none.least_memory->limit});
  EXPECT_FALSE(search(request(c, {"dp"})).plans.empty());
}

TEST(Search, APlanThatSeveralPartitionersFindIsShownOnce) {
  Case c(chain(8), {1, 1, 1, 1}, std::vector<double>(8, 1.0), 16);
  Request r = request(c, {"layer_equal", "time_equal", "dp"});
  r.problem.pipelines = 1;
  r.problem.stages = 4;
  r.micro_batches = {4};
  const Ranking ranking = search(r);
  ASSERT_EQ(ranking.plans.size(), 1U);
  EXPECT_EQ(ranking.plans[0].report.partitioner, "layer_equal");
}

TEST(Search, ThePublishedFormulasKnowNeitherScheduleNorMicroBatches) {
  GraphBuilder builder("two");
  SplitModel model;
  const TensorId a = builder.add_cost("a", {}, {.forward_s = 1});
  builder.add_cost("b", {a}, {.forward_s = 2});
  model.ops = {{.accelerator_s = 1}, {.accelerator_s = 2}};
  model.accelerators = 2;
  builder.carry({"dnn-partitioning", model});
  Case c(builder.build(), {1, 1}, {1, 2}, 64);
  Request r = request(c, {"dp", "time_equal"});
  r.problem.objective = plan::Objective::max_load;
  r.problem.pipelines = 1;
  r.schedules = {ScheduleChoice::of("gpipe"), ScheduleChoice::of("1f1b")};
  EXPECT_THAT(automatic_micro_batches(r.problem), ElementsAre(1));
  const Ranking ranking = search(r);
  ASSERT_EQ(ranking.plans.size(), 1U);  // two devices, one stage each; replicas are against the rules
  EXPECT_EQ(ranking.plans[0].plan.schedule, "gpipe");
  EXPECT_EQ(ranking.plans[0].report.objective_value, 2);
  ASSERT_EQ(ranking.refusals.size(), 1U);
  EXPECT_EQ(ranking.refusals[0].detail, "objective max_load: dp, exact and interleaved search by its formula");
}

std::vector<double> time_limits;  // of the calls of the partitioner below

plan::PlanSet keeps_its_limits(const plan::Problem&, const config::Values& options, plan::Evaluator&) {
  time_limits.push_back(options.duration("time_limit").value());
  return {};
}

TEST(Search, ATimeLimitIsForAllCallsTogether) {
  const config::Options options{{"time_limit", "of all calls", config::Duration{}, "600 s"}};
  partitioners::add({"keeps_its_limits", "for this test", options, 0, keeps_its_limits});
  Case c(chain(4), {1, 1}, {1, 1, 1, 1}, 8);
  Request r = request(c, {"keeps_its_limits"});
  r.schedules = {ScheduleChoice::of("gpipe"), ScheduleChoice::of("1f1b")};
  r.micro_batches = {1, 2};
  time_limits.clear();
  search(r);
  ASSERT_EQ(time_limits.size(), 4U);
  EXPECT_EQ(time_limits[0], 150);
  for (std::size_t i = 1; i < 4; ++i) {  // what one call leaves is shared by the rest
    EXPECT_GT(time_limits[i], time_limits[i - 1]);
    EXPECT_LE(time_limits[i], 600.0 / static_cast<double>(4 - i));
  }
}

plan::PlanSet late_with_four(const plan::Problem& problem, const config::Values&, plan::Evaluator& evaluate) {
  plan::PlanSet plans;
  if (problem.micro_batches == 4) {
    plans.refuse(1, 0, plan::Refusal::time_limit, "");
    return plans;
  }
  const std::vector<plan::StageCut> cuts{{{0, 1}, 1}, {{2, 3}, 1}};
  plan::Candidate candidate{plan::assign(problem, 1, cuts), {}};
  candidate.report = evaluate.evaluate(candidate.plan);
  candidate.report.partitioner = "late_with_four";
  plans.add(std::move(candidate));
  return plans;
}

// REPORTS P13: the best plan so far is called that, also where its own number of micro-batches was searched to the end.
TEST(Search, ATimeLimitIsSaidOfAllPlansOfAPartitioner) {
  partitioners::add({"late_with_four", "for this test", {}, 0, late_with_four});
  Case c(chain(4), {1, 1}, {1, 1, 1, 1}, 8);
  Request r = request(c, {"late_with_four"});
  r.micro_batches = {2};
  EXPECT_EQ(search(r).plans.at(0).report.stopped_by, "complete");
  r.micro_batches = {2, 4};
  EXPECT_EQ(search(r).plans.at(0).report.stopped_by, "time");
}

TEST(Search, LargeProblemsTryFewMicroBatchCounts) {
  Case c(chain(50'000), std::vector<double>(1024, 1.0), std::vector<double>(50'000, 1.0), 4096);
  EXPECT_EQ(automatic_micro_batches(c.problem).size(), 1U);
  Case smaller(chain(1000), std::vector<double>(16, 1.0), std::vector<double>(1000, 1.0), 4096);
  EXPECT_EQ(automatic_micro_batches(smaller.problem).size(), 13U);
}

TEST(Search, RefusedShapesSayWhy) {
  Case c(chain(3), {1, 1, 1, 1}, {1, 1, 1}, 8);
  Request r = request(c, {"dp"});
  r.problem.pipelines = 1;
  r.problem.stages = 4;
  r.micro_batches = {1};
  const Ranking ranking = search(r);
  EXPECT_TRUE(ranking.plans.empty());
  EXPECT_THAT(ranking.why_not(), HasSubstr("more stages than operators: 4 stages of 3 operators"));
  EXPECT_EQ(refusals_table(ranking.refusals).rows.at(0).at(0), "dp");
}

TEST(Search, ExplicitStagesReplaceThePartitioners) {
  Case c(chain(4), {1, 1}, {1, 1, 1, 1}, 8);
  Request r = request(c, {});
  r.explicit_stages = {{"n0"}, {"n1 .. n3"}};
  const Ranking ranking = search(r);
  ASSERT_FALSE(ranking.plans.empty());
  EXPECT_EQ(ranking.plans[0].report.partitioner, "explicit");
  EXPECT_THAT(ranking.plans[0].plan.pipelines[0].stages[1].ops, ElementsAre(1, 2, 3));
  r.explicit_stages = {{"n0"}, {"n1"}};
  EXPECT_THROW(search(r), InvalidInput);
}

TEST(Search, UnknownPartitionerIsRefused) {
  Case c(chain(4), {1, 1}, {1, 1, 1, 1}, 8);
  Request r = request(c, {});
  r.partitioners.push_back({"dpp", {}});
  EXPECT_THROW(search(r), InvalidInput);
}

// The plans of each schedule as when it is asked for alone.
TEST(Search, SchedulesThatAreCutAlikeShareAnswers) {
  Case c(chain(8), {1, 1, 1, 1}, {3, 1, 4, 1, 5, 9, 2, 6}, 16, 1, 0.5, 2);
  Request r = request(c, {"dp", "layer_equal", "exact"});
  r.micro_batches = {2, 4};
  r.top = 1000;
  const std::vector<std::string> names{"gpipe", "1f1b", "hippie", "zb-h1", "pipedream", "interleaved"};
  const auto all = [&](std::size_t shared) {
    r.schedules.clear();
    for (const std::string& name : names) r.schedules.push_back(ScheduleChoice::of(name));
    const Ranking together = search(r);
    EXPECT_EQ(together.shared_cuts, shared);
    for (const std::string& name : names) {
      r.schedules = {ScheduleChoice::of(name)};
      std::vector<plan::Candidate> its;
      for (const plan::Candidate& one : together.plans) {
        if (one.plan.schedule == name) its.push_back(one);
      }
      const Ranking alone = search(r);
      ASSERT_EQ(its.size(), alone.plans.size()) << name;
      for (std::size_t i = 0; i < its.size(); ++i) {
        EXPECT_EQ(its[i].plan, alone.plans[i].plan) << name;
        const plan::PlanReport &a = its[i].report, &b = alone.plans[i].report;
        EXPECT_EQ(a.schedule, name);
        EXPECT_EQ(std::tie(a.partitioner, a.order, a.certificate, a.stopped_by, a.bound, a.bound_source),
                  std::tie(b.partitioner, b.order, b.certificate, b.stopped_by, b.bound, b.bound_source));
        EXPECT_EQ(std::tie(a.iteration_time_s, a.peak_memory_bytes, a.memory_efficiency, a.objective_value),
                  std::tie(b.iteration_time_s, b.peak_memory_bytes, b.memory_efficiency, b.objective_value));
      }
    }
  };
  all(3 * 2 * 3);  // hippie has the form of gpipe, zb-h1 and pipedream that of 1f1b; interleaved deals its stages
  r.problem.memory_limit = Bytes(1 << 20);
  all(0);  // each keeps another number of micro-batches
}

TEST(Search, AnObjectiveThatThePartitionerDoesNotKnowIsTheReason) {
  Case c(chain(4), {1, 1}, {1, 1, 1, 1}, 8);
  Request r = request(c, {"exact"});
  r.problem.objective = plan::Objective::memory_efficiency;
  EXPECT_EQ(search(r).why_not(), "no plan: exact: not offered: no exact search for objective memory_efficiency");
}

// What is run again, and how stages are dealt, depends on the limit whoever cuts.
TEST(Search, TheLeastMemoryOfAFixedCutIsTheLeast) {
  for (const std::string schedule : {"gpipe", "1f1b", "zb-v"}) {
    Case c(chain(8), {1, 1}, {1, 5, 1, 1, 2, 1, 3, 1}, 8);
    Request r = request(c, {"layer_equal"});
    r.patience = kNoHurry;
    r.schedules = {ScheduleChoice::of(schedule)};
    r.micro_batches = {4};
    r.problem.recompute = plan::Recompute::automatic;
    r.problem.memory_limit = Bytes(1);
    const Ranking none = search(r);
    ASSERT_TRUE(none.plans.empty());
    ASSERT_TRUE(none.least_memory && none.least_memory->minimal);
    const Bytes named = none.least_memory->limit;
    r.problem.memory_limit = named;
    EXPECT_FALSE(search(r).plans.empty()) << schedule;
    for (std::int64_t less = 1; less < named.value(); less += 1 + less / 4) {
      r.problem.memory_limit = named - Bytes(less);
      EXPECT_TRUE(plans_under(r, closed_form).plans.empty()) << schedule << " " << less;
    }
  }
}

}  // namespace
}  // namespace millrace::planner
