// What every partitioner must keep (ARCHITECTURE, "Conformance of a partitioner"); a new registry row is tested by
// itself.
#include <algorithm>

#include <gmock/gmock.h>

#include "partitioners/registry.h"
#include "plan/validate.h"
#include "tests/partitioners/quick_options.h"
#include "tests/partitioners/tiny_problems.h"
#include "tests/plan/table_cost.h"

namespace millrace::partitioners {
namespace {

using testing_support::branches;
using testing_support::Case;
using testing_support::chain;
using testing_support::ladder;

// Times that differ, the same on every machine.
std::vector<double> uneven_times(const Graph& graph) {
  std::vector<double> times;
  for (OpId op = 0; op < graph.size(); ++op) times.push_back(1.0 + static_cast<double>((op * 7 + 3) % 5));
  return times;
}

std::unique_ptr<Case> make_case(Graph graph, const std::vector<double>& speeds, std::int64_t rows, std::int64_t m) {
  std::vector<double> times = uneven_times(graph);
  return std::make_unique<Case>(std::move(graph), speeds, std::move(times), rows, m, 0.01, 0.1);
}

plan::PlanSet run(const Entry& entry, const Case& c) {
  plan::ClosedFormEvaluator evaluate(c.problem);
  return entry.partition(c.problem, testing_support::quick_options(entry), evaluate);
}

class EveryPartitioner : public testing::TestWithParam<Entry> {
 protected:
  // Those whose stages share devices answer the objectives that know such plans (max_load_test.cpp), and refuse others.
  bool answers() const { return (GetParam().capabilities & kSharedDevices) == 0; }
};

TEST_P(EveryPartitioner, MakesValidPlansOrSaysWhyNot) {
  for (const int graph : {0, 1, 2}) {
    for (const int devices : {1, 2, 3, 5, 6}) {
      for (const std::int64_t m : {1, 3}) {
        const auto c = make_case(graph == 0   ? chain(5)
                                 : graph == 1 ? ladder(3)
                                              : branches(),
                                 std::vector<double>(static_cast<std::size_t>(devices), 1.0), 12, m);
        for (int pipelines = 0; pipelines <= devices; ++pipelines) {
          for (int stages = 0; stages <= devices + 1; ++stages) {
            c->problem.pipelines = pipelines > 0 ? std::optional(pipelines) : std::nullopt;
            c->problem.stages = stages > 0 ? std::optional(stages) : std::nullopt;
            const plan::PlanSet plans = run(GetParam(), *c);
            EXPECT_FALSE(plans.candidates().empty() && plans.refusals().empty());
            for (const plan::Candidate& candidate : plans.candidates()) {
              for (const auto& violation : plan::validate(candidate.plan, c->graph, {devices, c->problem.batch})) {
                ADD_FAILURE() << c->graph.name() << " on " << devices << ": " << violation.text;
              }
              if (pipelines > 0) {
                EXPECT_EQ(candidate.plan.pipelines.size(), static_cast<std::size_t>(pipelines));
              }
              if (stages > 0) {
                EXPECT_EQ(candidate.plan.pipelines[0].stages.size(), static_cast<std::size_t>(stages));
              }
              EXPECT_EQ(candidate.plan.pipelines[0].micro_batches, m);
              EXPECT_EQ(candidate.report.partitioner, GetParam().name);
              ASSERT_TRUE(candidate.report.bound);
              EXPECT_GE(candidate.report.iteration_time_s, *candidate.report.bound * (1 - 1e-9));
            }
          }
        }
      }
    }
  }
}

TEST_P(EveryPartitioner, IsDeterministic) {
  const auto c = make_case(ladder(6), {1, 1, 0.5, 0.5}, 16, 4);
  const plan::PlanSet first = run(GetParam(), *c), second = run(GetParam(), *c);
  ASSERT_EQ(first.candidates().size(), second.candidates().size());
  for (std::size_t i = 0; i < first.candidates().size(); ++i) {
    EXPECT_EQ(first.candidates()[i].plan, second.candidates()[i].plan);
  }
}

TEST_P(EveryPartitioner, RefusesABatchThatIsTooSmall) {
  if (!answers()) return;
  const auto c = make_case(chain(4), {1, 1, 1, 1}, 1, 3);  // 3 rows in 3 micro-batches
  c->problem.pipelines = 2;
  const plan::PlanSet plans = run(GetParam(), *c);
  EXPECT_TRUE(plans.candidates().empty());
  ASSERT_FALSE(plans.refusals().empty());
  EXPECT_EQ(plans.refusals()[0].reason, plan::Refusal::batch_too_small);
}

TEST_P(EveryPartitioner, KeepsTheMemoryLimitOrSaysThatItDoesNot) {
  if (!answers()) return;
  const auto c = make_case(chain(12), {1, 1, 1}, 3, 4);
  for (const std::int64_t limit : {10, 300, 600, 100000}) {
    c->problem.memory_limit = Bytes(limit);
    const plan::PlanSet plans = run(GetParam(), *c);
    for (const plan::Candidate& candidate : plans.candidates()) {
      EXPECT_EQ(candidate.report.feasible, candidate.report.peak_memory_bytes <= limit);
      EXPECT_EQ(candidate.report.feasible, candidate.report.why_not.empty());
    }
    if (limit == 10) {
      EXPECT_FALSE(plans.feasible());
    }
    if (limit == 100000) {
      EXPECT_TRUE(plans.feasible());
    }
  }
}

TEST_P(EveryPartitioner, OneThatSearchesIsNeverWorseThanTheBaselines) {
  if (!answers()) return;
  if ((GetParam().capabilities & kBaseline) != 0) return;  // they are what the others are held against
  for (const int graph : {0, 1, 2}) {
    for (const std::int64_t m : {1, 4, 8}) {
      const auto c = make_case(graph == 0 ? chain(9) : graph == 1 ? ladder(5) : branches(), {1, 1, 1, 1}, 8, m);
      const plan::Objective objective = c->problem.objective;
      const double ours = run(GetParam(), *c).best(objective).report.iteration_time_s;
      for (const Entry& other : registry()) {
        if ((other.capabilities & kBaseline) == 0) continue;
        const plan::PlanSet theirs = run(other, *c);
        EXPECT_LE(ours, theirs.best(objective).report.iteration_time_s * (1 + 1e-3))
            << c->graph.name() << " m " << m << " against " << other.name;
      }
    }
  }
}

// REPORTS P03.
TEST_P(EveryPartitioner, ThreeStagesOfAChainOfTenHoldAllTen) {
  if (!answers()) return;
  const auto c = make_case(chain(10), {1, 1, 1}, 12, 2);
  c->problem.pipelines = 1;
  c->problem.stages = 3;
  const plan::PlanSet plans = run(GetParam(), *c);
  for (const plan::Candidate& candidate : plans.candidates()) {
    std::size_t operators = 0;
    for (const Stage& stage : candidate.plan.pipelines[0].stages) operators += stage.ops.size();
    EXPECT_EQ(operators, 10U);
  }
  EXPECT_EQ(plans.candidates().size() + plans.refusals().size(), 1U);
}

// Nothing is left to chance: with no time at all there is a plan, and it says so.
TEST_P(EveryPartitioner, AnExpiredTimeLimitIsSaid) {
  config::Values options = testing_support::quick_options(GetParam());
  if (!answers() || !options.has("time_limit")) return;
  options.set("time_limit", Seconds(-1));
  for (const int graph : {0, 1, 2}) {
    const auto c = make_case(graph == 0 ? chain(9) : graph == 1 ? ladder(5) : branches(), {1, 1, 1, 1}, 8, 4);
    plan::ClosedFormEvaluator evaluate(c->problem);
    const plan::PlanSet plans = GetParam().partition(c->problem, options, evaluate);
    EXPECT_TRUE(plans.feasible());
    for (const plan::Candidate& candidate : plans.candidates()) {
      EXPECT_EQ(candidate.report.stopped_by, "time");
      EXPECT_THAT(plan::validate(candidate.plan, c->graph, {4, c->problem.batch}), testing::IsEmpty());
    }
    for (const plan::Refused& refused : plans.refusals()) EXPECT_EQ(refused.reason, plan::Refusal::time_limit);
  }
}

// The same where little fits: here one stage on each device, an even number of operators each.
TEST_P(EveryPartitioner, AnExpiredTimeLimitLeavesAPlanThatFits) {
  config::Values options = testing_support::quick_options(GetParam());
  if (!answers() || !options.has("time_limit")) return;
  const auto c = make_case(chain(12), {1, 1, 1}, 3, 4);
  c->problem.memory_limit = Bytes(600);
  plan::ClosedFormEvaluator evaluate(c->problem);
  if (!GetParam().partition(c->problem, options, evaluate).feasible()) return;
  options.set("time_limit", Seconds(-1));
  EXPECT_TRUE(GetParam().partition(c->problem, options, evaluate).feasible());
}

// Published planners' formulas know costs that times and bytes of operators do not: who cannot search by them refuses.
TEST_P(EveryPartitioner, RefusesAPublishedObjectiveOrSearchesByIt) {
  const std::vector<std::string> offering{"dp", "exact", "interleaved"};
  if (std::find(offering.begin(), offering.end(), GetParam().name) != offering.end()) return;
  for (const auto objective : {plan::Objective::max_load, plan::Objective::time_per_sample, plan::Objective::pipedream,
                               plan::Objective::dapple}) {
    const auto c = make_case(chain(5), {1, 1}, 4, 1);
    c->problem.objective = objective;
    const plan::PlanSet plans = run(GetParam(), *c);
    EXPECT_TRUE(plans.candidates().empty());
    ASSERT_EQ(plans.refusals().size(), 1U);
    EXPECT_EQ(plans.refusals()[0].reason, plan::Refusal::not_offered);
    EXPECT_THAT(plans.refusals()[0].detail, testing::HasSubstr("dp"));
  }
}

TEST_P(EveryPartitioner, RecomputesAllWhereAsked) {
  for (const int devices : {1, 2, 4}) {
    for (const char* schedule : {"gpipe", "1f1b"}) {
      const auto c = make_case(branches(), std::vector<double>(static_cast<std::size_t>(devices), 1.0), 8, 2);
      c->problem.schedule = schedule;
      c->problem.recompute = plan::Recompute::all;
      const plan::PlanSet plans = run(GetParam(), *c);
      for (const plan::Candidate& candidate : plans.candidates()) {
        for (const Pipeline& pipeline : candidate.plan.pipelines) {
          for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
            const bool at_once = s + 1 == pipeline.stages.size() && c->problem.schedule == "1f1b";
            const Stage& stage = pipeline.stages[s];
            EXPECT_TRUE(stage.recompute == stage.ops || (at_once && stage.recompute.empty())) << schedule << ' ' << s;
          }
        }
      }
    }
  }
}

TEST_P(EveryPartitioner, RecomputesWhereItWouldNotFitOtherwise) {
  if (GetParam().name == "exact" || !answers()) return;  // it searches plans without recomputation
  Case c(testing_support::saving_chain(8), {1, 1}, std::vector<double>(8, 1.0), 4, 2);
  c.problem.pipelines = 1;
  c.problem.stages = GetParam().name == "data_parallel" ? 1 : 2;
  c.problem.memory_limit = Bytes(300);
  plan::ClosedFormEvaluator evaluate(c.problem);
  const config::Values options = testing_support::quick_options(GetParam());
  EXPECT_FALSE(GetParam().partition(c.problem, options, evaluate).feasible());
  c.problem.recompute = plan::Recompute::automatic;
  EXPECT_TRUE(GetParam().partition(c.problem, options, evaluate).feasible());
}

// Whether a plan has equal pipelines on consecutive devices, rows by speed: the class that is tried out below.
bool in_tried_class(const Plan& plan, const plan::Problem& problem) {
  std::vector<plan::StageCut> cuts;
  for (const Stage& stage : plan.pipelines[0].stages) {
    cuts.push_back({stage.ops, static_cast<int>(stage.devices.size())});
  }
  const auto pipelines = static_cast<int>(plan.pipelines.size());
  if (problem.cluster->size() % pipelines != 0) return false;
  int devices = 0;
  for (const plan::StageCut& cut : cuts) devices += cut.replicas;
  if (devices * pipelines != problem.cluster->size()) return false;
  return plan::assign(problem, pipelines, cuts, plan::Shares::by_speed).pipelines == plan.pipelines;
}

TEST_P(EveryPartitioner, NoPlanOfTheTriedClassIsBetterThanTheBestOfAll) {
  if (!answers()) return;
  for (std::uint64_t number = 0; number < 48; ++number) {
    const int size = 2 + static_cast<int>(number % 4);
    const std::uint64_t edges = number * 29 % testing_support::dag_count(size);
    testing_support::TinyCase c(testing_support::dag(size, edges, 6), 51, number);
    const testing_support::BestOfAll all = testing_support::try_all(c.problem);
    for (const auto objective : {plan::Objective::throughput, plan::Objective::bottleneck}) {
      c.problem.objective = objective;
      plan::ClosedFormEvaluator evaluate(c.problem);
      const plan::PlanSet plans = GetParam().partition(c.problem, testing_support::quick_options(GetParam()), evaluate);
      const double least = objective == plan::Objective::throughput ? all.iteration_s : all.bottleneck_s;
      double ours = INFINITY;
      for (const plan::Candidate& candidate : plans.candidates()) {
        if (!candidate.report.feasible || !in_tried_class(candidate.plan, c.problem)) continue;
        ours = std::min(ours, *candidate.report.objective_value);
      }
      EXPECT_GE(ours * (1 + 1e-9), least) << size << " operators, edges " << edges;
      if ((GetParam().capabilities & kProvesOptimum) != 0 && all.any) {
        EXPECT_LE(ours, least * (1 + 1e-9)) << size << " operators, edges " << edges;
      }
    }
  }
}

// REPORTS P13.
TEST_P(EveryPartitioner, JoinsDoNotMultiplyPaths) {
  if (!answers()) return;
  const auto c = make_case(ladder(40), {1, 1, 1, 1}, 8, 4);  // 2^40 paths
  EXPECT_TRUE(run(GetParam(), *c).feasible());
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryPartitioner, testing::ValuesIn(registry()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace millrace::partitioners
