// Bounds of every objective: no plan of brute force or of any partitioner beats them, and where they are met.
#include "plan/bounds.h"

#include <numeric>

#include <gmock/gmock.h>

#include "partitioners/registry.h"
#include "plan/device_kinds.h"
#include "tests/partitioners/quick_options.h"
#include "tests/partitioners/tiny_problems.h"
#include "tests/plan/table_cost.h"

namespace millrace::partitioners {
namespace {

using testing_support::BestOfAll;
using testing_support::Case;
using testing_support::chain;
using testing_support::dag;
using testing_support::dag_count;
using testing_support::TinyCase;

constexpr double kRounding = 1 + 1e-9;

plan::Bound bound(plan::Problem problem, plan::Objective objective) {
  problem.objective = objective;
  return plan::proven_bound(problem).value();
}

void expect_no_plan_beats(TinyCase& c, const std::string& what) {
  c.problem.memory_limit.reset();
  const BestOfAll all = testing_support::try_all(c.problem);
  if (!all.any) return;
  EXPECT_GE(all.iteration_s * kRounding, bound(c.problem, plan::Objective::throughput).value) << what;
  EXPECT_GE(all.bottleneck_s * kRounding, bound(c.problem, plan::Objective::bottleneck).value) << what;
  EXPECT_GE(all.bytes * kRounding, bound(c.problem, plan::Objective::communication).value) << what;
  c.problem.objective = plan::Objective::memory_efficiency;
  if (const auto most = plan::proven_bound(c.problem)) {
    EXPECT_LE(all.memory_efficiency, most->value * kRounding) << what;
  }
}

TEST(Bounds, NoPlanOfAnySmallGraphBeatsThem) {
  for (int size = 1; size <= 4; ++size) {
    for (std::uint64_t edges = 0; edges < dag_count(size); ++edges) {
      for (std::uint64_t draw = 0; draw < 4; ++draw) {
        TinyCase c(dag(size, edges, draw), 31 + draw, edges);
        expect_no_plan_beats(c, fmt::format("{} operators, edges {}, draw {}", size, edges, draw));
      }
    }
  }
  for (std::uint64_t edges = 0; edges < dag_count(5); edges += 3) {
    TinyCase c(dag(5, edges, 4), 35, edges);
    expect_no_plan_beats(c, fmt::format("5 operators, edges {}", edges));
  }
}

TEST(Bounds, NoPlanOfAnyPartitionerBeatsThem) {
  for (const auto objective : {plan::Objective::throughput, plan::Objective::bottleneck,
                               plan::Objective::memory_efficiency, plan::Objective::communication}) {
    for (std::uint64_t number = 0; number < 12; ++number) {
      TinyCase c(dag(5, number * 85 % dag_count(5), 5), 41, number);
      c.problem.objective = objective;
      const auto least = plan::proven_bound(c.problem);
      for (const Entry& entry : registry()) {
        plan::ClosedFormEvaluator evaluate(c.problem);
        const plan::PlanSet plans = entry.partition(c.problem, testing_support::quick_options(entry), evaluate);
        for (const plan::Candidate& candidate : plans.candidates()) {
          const double value = plan::value_of(objective, candidate.report);
          if (!least) continue;
          if (objective == plan::Objective::memory_efficiency) {
            EXPECT_LE(value, least->value * kRounding) << entry.name << ' ' << number;
          } else {
            EXPECT_GE(value * kRounding, least->value) << entry.name << ' ' << number << ' ' << plan::name(objective);
          }
        }
      }
    }
  }
}

// A bound that a search proves holds for the plans of all others, whatever their class: unequal devices in any order,
// pipelines of any size, stages that recompute.
TEST(Bounds, NoPlanOfAnyPartitionerIsBelowTheBoundOfAnyPlan) {
  for (std::uint64_t number = 0; number < 60; ++number) {
    TinyCase c(dag(4 + static_cast<int>(number % 3), number * 77 % dag_count(4), 9), 53, number);
    if (number % 3 == 0) c.problem.recompute = plan::Recompute::automatic;
    if (number % 5 == 0) c.problem.pipelines.reset();
    c.problem.objective = number % 2 == 0 ? plan::Objective::throughput : plan::Objective::bottleneck;
    std::vector<plan::PlanReport> reports;
    for (const Entry& entry : registry()) {
      plan::ClosedFormEvaluator evaluate(c.problem);
      plan::PlanSet plans = entry.partition(c.problem, testing_support::quick_options(entry), evaluate);
      for (plan::Candidate& candidate : plans.candidates()) {
        if (candidate.report.feasible) reports.push_back(std::move(candidate.report));
      }
    }
    for (const plan::PlanReport& proven : reports) {
      EXPECT_GE(proven.optimality_gap.value_or(0), 0) << number;
      for (const plan::PlanReport& other : reports) {
        EXPECT_GE(*other.objective_value * kRounding, *proven.bound)
            << number << ": " << other.partitioner << " below the bound of " << proven.partitioner << " ("
            << proven.bound_source << ')';
      }
    }
  }
}

TEST(Bounds, SayWhatProvesThem) {
  Case giant(chain(7), {1, 1, 1, 1}, {1, 1, 1, 20, 1, 1, 1}, 8, 2);
  giant.problem.micro_batches = 1;
  giant.problem.batch = 8;
  EXPECT_EQ(bound(giant.problem, plan::Objective::throughput).source, "work / speed");
  EXPECT_NEAR(bound(giant.problem, plan::Objective::throughput).value, 6.5, 1e-9);
  giant.problem.pipelines = 1;
  giant.problem.stages = 4;
  EXPECT_EQ(bound(giant.problem, plan::Objective::bottleneck).source, "largest operator");
  EXPECT_NEAR(bound(giant.problem, plan::Objective::bottleneck).value, 20.0 / 8, 1e-9);
  giant.problem.stages = 3;  // two devices for its stage at most
  EXPECT_NEAR(bound(giant.problem, plan::Objective::bottleneck).value, 10.0 / 8, 1e-9);
}

// Even stages without communication reach the fill exactly: (m + p − 1) / p of the work of a micro-batch.
TEST(Bounds, FillIsExactForEvenPipelines) {
  for (const int p : {2, 3, 4}) {
    for (const std::int64_t m : {1, 4, 9}) {
      for (const char* schedule : {"gpipe", "1f1b"}) {
        Case c(chain(12), std::vector<double>(static_cast<std::size_t>(p), 1.0), std::vector<double>(12, 1.0), 3, m);
        c.problem.schedule = schedule;
        c.problem.pipelines = 1;
        c.problem.stages = p;
        const double fill = 12.0 * static_cast<double>(m + p - 1) / p;
        EXPECT_NEAR(bound(c.problem, plan::Objective::throughput).value, fill, 1e-9);
        EXPECT_EQ(bound(c.problem, plan::Objective::throughput).source, "pipeline fill");
        std::vector<plan::StageCut> stages(static_cast<std::size_t>(p));
        for (OpId op = 0; op < 12; ++op) stages[static_cast<std::size_t>(op * p / 12)].ops.push_back(op);
        const plan::PlanReport report =
            plan::ClosedFormEvaluator(c.problem).evaluate(plan::assign(c.problem, 1, stages));
        EXPECT_NEAR(report.iteration_time_s, fill, 1e-9);
        const auto measured = plan::proven_bound(c.problem, plan::Judge::measured);
        EXPECT_NEAR(measured->value, 12.0 * static_cast<double>(m) / p, 1e-9) << "a simulation may do better";
      }
    }
  }
}

TEST(Bounds, AReplicatedModelIsReducedWhole) {
  const Graph graph = dag(3, 7, 8);
  std::int64_t parameters = 0;
  for (const TensorId id : graph.parameters()) parameters += graph.tensor(id).shape.elements_per_sample();
  ASSERT_GT(parameters, 0);
  Case c(graph, {1, 1, 1, 1}, {1, 2, 3}, 4, 5, 0, 7.5);
  c.problem.stages = 1;
  const plan::Bound forced = bound(c.problem, plan::Objective::throughput);
  EXPECT_NEAR(forced.value, 5 * 6.0 / 4 + 7.5, 1e-9);
  EXPECT_THAT(forced.source, testing::HasSubstr("reduction"));
  EXPECT_NEAR(plan::proven_bound(c.problem, plan::Judge::measured)->value, 4 * 6.0 / 4 + 7.5, 1e-9);
  EXPECT_NEAR(bound(c.problem, plan::Objective::communication).value, 2.0 * 3 * static_cast<double>(parameters), 1e-9);
  c.problem.stages.reset();
  EXPECT_LT(bound(c.problem, plan::Objective::throughput).value, 5 * 6.0 / 4 + 7.5);
}

TEST(Bounds, OneDeviceNeedsNoBytesAndReachesItsBound) {
  Case c(chain(5), {1}, std::vector<double>(5, 1.0), 2, 3);
  EXPECT_EQ(bound(c.problem, plan::Objective::communication).value, 0);
  EXPECT_NEAR(bound(c.problem, plan::Objective::throughput).value, 15, 1e-9);
  EXPECT_EQ(plan::optimality_gap(plan::Objective::communication, 0, 0), 0.0);
}

TEST(Bounds, TwoDevicesMustExchangeATensorOrSumAllParameters) {
  // Outputs of 5 bytes a sample, parameters of 40 and 80 bytes: 2 · 5 · batch for a cut, 2 · 120 for replicas.
  GraphBuilder builder("pair");
  const TensorId x = builder.add_cost("a", {}, {1, 1, 1, 40, 5, 5});
  builder.add_cost("b", {x}, {1, 1, 1, 80, 5, 5});
  Case c(builder.build(), {1, 1}, {1, 1}, 4, 2);
  EXPECT_EQ(bound(c.problem, plan::Objective::communication).value, 2 * 5 * 8);
  c.problem.batch = 80;
  EXPECT_EQ(bound(c.problem, plan::Objective::communication).value, 240);
}

TEST(Bounds, RoundingIsNoGap) {
  EXPECT_EQ(plan::optimality_gap(plan::Objective::throughput, 10 - 1.7e-13, 10), 0.0);
  EXPECT_LT(*plan::optimality_gap(plan::Objective::throughput, 9, 10), 0.0) << "a plan of another class";
}

TEST(Bounds, GapsAreFractionsOfTheBoundEitherWay) {
  EXPECT_DOUBLE_EQ(plan::optimality_gap(plan::Objective::throughput, 12, 10).value(), 0.2);
  EXPECT_DOUBLE_EQ(plan::optimality_gap(plan::Objective::memory_efficiency, 10, 12).value(), 0.2);
  EXPECT_FALSE(plan::optimality_gap(plan::Objective::communication, 3, 0));
}

// Counts how often it is asked.
class CountingCost : public cost::CostModel {
 public:
  explicit CountingCost(const cluster::Cluster& cluster) : cluster_(cluster) {}
  cost::OpTime op_time(OpId, std::int64_t rows, int device) const override {
    ++asked;
    const Seconds third(static_cast<double>(rows) / cluster_.device(device).speed / 3);
    return {third, third, third};
  }
  Seconds transfer_time(Bytes, int, int) const override { return Seconds(0); }
  Seconds all_reduce_time(Bytes, std::span<const int>) const override { return Seconds(0); }
  mutable std::int64_t asked = 0;

 private:
  const cluster::Cluster& cluster_;
};

TEST(Bounds, AskOnceForEachKindOfDevice) {
  Case c(chain(300), std::vector<double>(1024, 1.0), std::vector<double>(300, 1.0), 1024);
  const CountingCost alike(c.cluster);
  c.problem.cost = &alike;
  EXPECT_NEAR(bound(c.problem, plan::Objective::throughput).value, 300, 1e-6);
  EXPECT_EQ(alike.asked, 300);

  std::vector<double> speeds(1024);
  for (std::size_t d = 0; d < speeds.size(); ++d) speeds[d] = 1 - static_cast<double>(d) / 2048;
  c.cluster = testing_support::machine(speeds);
  const CountingCost mixed(c.cluster);
  c.problem.cost = &mixed;
  const double exact = 300.0 * 1024 / std::accumulate(speeds.begin(), speeds.end(), 0.0);
  const double merged = bound(c.problem, plan::Objective::throughput).value;
  EXPECT_LE(merged, exact * kRounding);  // a step of speed stands for slower devices
  EXPECT_GE(merged, exact * 0.95);
  EXPECT_LE(mixed.asked, 300 * 18);
}

TEST(Bounds, KindsOfDevicesAreToldApart) {
  const cluster::Cluster few = testing_support::machine({1, 2, 1, 1});
  const auto kinds = plan::device_kinds(few, 16);
  ASSERT_EQ(kinds.size(), 2U);
  EXPECT_EQ(kinds[0].count, 3);
  EXPECT_EQ(kinds[1].device, 1);
  EXPECT_THAT(plan::first_alike(few), testing::ElementsAre(0, 1, 0, 0));
}

}  // namespace
}  // namespace millrace::partitioners
