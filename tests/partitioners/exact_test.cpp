// The exact partitioner against all plans of its class on every small graph, its certificate, its limits.
#include "partitioners/exact.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include <gmock/gmock.h>

#include "partitioners/common/ideals/lattice.h"
#include "plan/bounds.h"
#include "plan/validate.h"
#include "tests/partitioners/exact_on_all.h"
#include "tests/partitioners/tiny_problems.h"
#include "tests/plan/cost_case.h"
#include "tests/plan/table_cost.h"

namespace millrace::partitioners {
namespace {

using testing_support::Case;
using testing_support::chain;
using testing_support::dag;
using testing_support::dag_count;
using testing_support::TinyCase;

void expect_equals_all_graphs(int size, std::uint64_t every) {
  for (std::uint64_t edges = 0; edges < dag_count(size); edges += every) {
    TinyCase c(dag(size, edges, 1), 2, edges * 8 + static_cast<std::uint64_t>(size));
    expect_equals_all(c, fmt::format("{} operators, edges {}", size, edges));
  }
}

TEST(Exact, EqualsBruteForceOnEveryGraphOfUpToFiveOperators) {
  for (int size = 1; size <= 5; ++size) expect_equals_all_graphs(size, 1);
}

TEST(Exact, EqualsBruteForceOnSomeGraphsOfSixAndSevenOperators) {
  expect_equals_all_graphs(6, 331);
  expect_equals_all_graphs(7, 60'013);
}

TEST(Exact, EqualsBruteForceWhereLinksDiffer) {
  std::uint64_t number = 0;
  for (const int on_first : {1, 2, 3}) {
    for (std::uint64_t edges = 1; edges < dag_count(4); edges += 3) {
      for (const int stages : {0, 3, 4}) {
        std::vector<cluster::Device> devices(4);
        TinyCase c(dag(4, edges, 3), TinyCase::machine(std::move(devices), on_first, true), 4, ++number);
        c.problem.memory_limit.reset();
        c.problem.pipelines.reset();
        c.problem.stages = stages > 0 ? std::optional(stages) : std::nullopt;
        expect_equals_all(c, fmt::format("{} on the first node, edges {}, stages {}", on_first, edges, stages));
      }
    }
  }
}

TEST(Exact, RefusalsNameTheirReason) {
  TinyCase c(dag(4, 9, 1), TinyCase::machine(std::vector<cluster::Device>(2), 2, true), 1, 1);
  c.problem.memory_limit.reset();
  c.problem.pipelines = 1;
  c.problem.stages.reset();
  c.problem.micro_batches = 2;
  c.problem.batch = 8;
  const auto refusal = [&](const std::function<void(plan::Problem&)>& change) {
    plan::Problem problem = c.problem;
    change(problem);
    const plan::PlanSet plans = run_exact(problem);
    return plans.feasible() || plans.refusals().empty() ? std::string() : plans.refusals()[0].detail;
  };
  EXPECT_EQ(refusal([](plan::Problem&) {}), "");
  EXPECT_EQ(refusal([](plan::Problem& problem) { problem.objective = plan::Objective::memory_efficiency; }),
            "no exact search for objective memory_efficiency");
  EXPECT_EQ(refusal([](plan::Problem& problem) { problem.recompute = plan::Recompute::all; }),
            "plans without recomputation only");
  EXPECT_EQ(refusal([](plan::Problem& problem) { problem.stages = 3; }), "3 stages on 2 devices of a pipeline");
  EXPECT_EQ(refusal([](plan::Problem& problem) { problem.memory_limit = Bytes(1); }),
            "proven: no plan of equal pipelines fits");
}

// What the certificate covers, in words; it is the bound where that is all plans.
TEST(Exact, TheCertificateSaysWhatIsProven) {
  const auto report = [](const std::vector<double>& speeds, plan::Recompute recompute) {
    testing_support::CostCase c(dag(5, 300, 1), {.speeds = speeds}, 6, 2);
    c.problem.pipelines = 1;
    c.problem.recompute = recompute;
    return run_exact(c.problem).best(c.problem.objective).report;
  };
  const auto equal = report({1, 1, 1}, plan::Recompute::none);
  EXPECT_EQ(equal.bound_source, "exact optimum");
  EXPECT_EQ(equal.optimality_gap, 0.0);
  EXPECT_THAT(equal.certificate, testing::StartsWith("the best of all plans: "));
  const auto unequal = report({1, 0.5, 1}, plan::Recompute::none);
  EXPECT_NE(unequal.bound_source, "exact optimum");
  EXPECT_THAT(unequal.certificate,
              testing::StartsWith("the best of all plans with one pipeline in the cluster's order of devices: "));
  EXPECT_THAT(report({1, 1}, plan::Recompute::automatic).certificate,
              testing::StartsWith("the best of all plans with one pipeline, without recomputation: "));
}

// Takes until the deadline of the search has passed, whatever it is asked.
class SlowEvaluator : public plan::Evaluator {
 public:
  SlowEvaluator(const plan::Problem& problem, std::chrono::steady_clock::time_point until)
      : closed_form_(problem), until_(until) {}
  plan::PlanReport evaluate(const Plan& plan) override {
    std::this_thread::sleep_until(until_);
    return closed_form_.evaluate(plan);
  }

 private:
  plan::ClosedFormEvaluator closed_form_;
  std::chrono::steady_clock::time_point until_;
};

TEST(Exact, AtTheTimeLimitTheBestPlanSoFarHasNoMoreThanTheBoundOfAllPlans) {
  Case c(chain(6), {1, 1}, {3, 1, 4, 1, 5, 9}, 4, 4, 0.1);
  c.problem.pipelines = 1;
  c.problem.stages = 2;
  config::Values options = config::defaults(exact_options());
  options.set("time_limit", Seconds(0.3));
  SlowEvaluator evaluate(c.problem, std::chrono::steady_clock::now() + std::chrono::milliseconds(350));
  const plan::PlanSet plans = exact(c.problem, options, evaluate);
  ASSERT_EQ(plans.candidates().size(), 1U);
  const plan::PlanReport& report = plans.candidates()[0].report;
  EXPECT_EQ(report.stopped_by, "time");
  const auto known = plan::proven_bound(c.problem);
  EXPECT_EQ(report.bound, known->value);
  EXPECT_EQ(report.bound_source, known->source);
  EXPECT_THAT(plan::validate(plans.candidates()[0].plan, c.graph, {2, c.problem.batch}), testing::IsEmpty());
}

// linear0 … of one shape; those named share the weights of the first of them.
Graph tied_chain(const std::vector<int>& tied, int size) {
  GraphBuilder builder("tied");
  TensorId x = builder.input("x", {Dims{8}});
  for (int i = 0; i < size; ++i) {
    OpSpec op{.name = fmt::format("linear{}", i), .kind = "linear", .inputs = {x}};
    op.attributes = {{"out_features", std::int64_t{8}}, {"bias", false}};
    if (i != tied.front() && std::find(tied.begin(), tied.end(), i) != tied.end()) {
      op.shared_parameters = {builder.find_tensor(fmt::format("linear{}.weight", tied.front()))};
    }
    x = builder.add(std::move(op));
  }
  return builder.build();
}

// The search leaves the sum over the stages that share a parameter out: its value bounds every plan, and is certified
// as the optimum where the owners are in one stage.
TEST(Exact, OfTiedWeightsTheBoundHoldsWhetherTheyAreCutOrNot) {
  int together = 0, cut = 0;
  for (std::uint64_t number = 0; number < 40; ++number) {
    const std::vector<int> tied = number % 2 == 0 ? std::vector{0, 4} : std::vector{1, 2};
    const auto links = static_cast<int>(number / 2 % 2);  // one node or two
    std::vector<cluster::Device> devices(3);
    for (cluster::Device& device : devices) {
      device.flops["fp32"] = FlopsPerSecond(1000);
      device.bandwidth = BytesPerSecond(1e6);
    }
    TinyCase c(tied_chain(tied, 5), TinyCase::machine(std::move(devices), 3 - links, number / 4 % 2 == 0), 61, number);
    const BestOfAll all = testing_support::try_all(c.problem);
    if (!all.any) continue;
    const plan::Candidate best = run_exact(c.problem).best(c.problem.objective);
    ASSERT_TRUE(best.report.feasible);
    EXPECT_LE(*best.report.bound, all.iteration_s * (1 + 1e-9)) << number;
    EXPECT_GE(best.report.iteration_time_s, all.iteration_s * (1 - 1e-9)) << number;
    const auto& stages = best.plan.pipelines[0].stages;
    const bool one_stage = std::any_of(stages.begin(), stages.end(), [&](const Stage& stage) {
      return std::all_of(tied.begin(), tied.end(),
                         [&](OpId op) { return std::find(stage.ops.begin(), stage.ops.end(), op) != stage.ops.end(); });
    });
    ++(one_stage ? together : cut);
    if (!one_stage) continue;
    EXPECT_NEAR(best.report.iteration_time_s, all.iteration_s, 1e-9 * all.iteration_s) << number;
    EXPECT_THAT(best.report.certificate, testing::StartsWith("the best of ")) << number;
  }
  EXPECT_GT(together, 5);
  EXPECT_GT(cut, 5);
}

TEST(Exact, ARefusalSaysHowManyIdealsAreTooMany) {
  TinyCase c(dag(5, 0, 1), 1, 1);  // 32 ideals
  c.problem.stages.reset();
  EXPECT_TRUE(run_exact(c.problem, 32).refusals().empty());
  const plan::PlanSet plans = run_exact(c.problem, 31);
  EXPECT_TRUE(plans.candidates().empty());
  ASSERT_FALSE(plans.refusals().empty());
  EXPECT_EQ(plans.refusals()[0].reason, plan::Refusal::too_large);
  EXPECT_EQ(plans.refusals()[0].detail, "more than 31 ideals (max_ideals)");
}

TEST(Exact, WideGraphsAreKnownToBeTooLargeWithoutCounting) {
  const Graph wide = dag(24, 0, 1);  // 2^24 ideals
  const auto forever = std::chrono::steady_clock::time_point::max();
  EXPECT_FALSE(ideals::Lattice::of(wide, successors(wide), (std::size_t{1} << 24) - 1, forever));
  const Graph narrow = dag(10, 0, 1);
  EXPECT_EQ(ideals::Lattice::of(narrow, successors(narrow), 1024, forever)->size(), 1024);
  EXPECT_FALSE(ideals::Lattice::of(narrow, successors(narrow), 1024, {})) << "no time";
}

}  // namespace
}  // namespace millrace::partitioners
