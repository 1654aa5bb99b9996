// The exact partitioner against all plans of its class on every small graph, its certificate, its limits.
#include "partitioners/exact.h"

#include <gmock/gmock.h>

#include "partitioners/common/ideals/lattice.h"
#include "plan/bounds.h"
#include "plan/validate.h"
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

plan::PlanSet run(const plan::Problem& problem, std::int64_t max_ideals = 1000) {
  config::Values options = config::defaults(exact_options());
  options.set("max_ideals", max_ideals);
  plan::ClosedFormEvaluator evaluate(problem);
  return exact(problem, options, evaluate);
}

// What exact looks through, as its certificate has it.
std::string class_of(const TinyCase& c) {
  bool alike = c.cluster.nodes().size() == 1;
  for (int device = 1; device < c.cluster.size(); ++device) {
    alike = alike && c.cluster.device(device) == c.cluster.device(0);
  }
  const bool one = c.problem.pipelines.value_or(c.cluster.size()) == 1 || c.problem.batch < 2 * c.problem.micro_batches;
  if (one && alike) return "all plans";
  return fmt::format("all plans with {}{}", one ? "one pipeline" : "equal pipelines",
                     alike ? "" : " in the cluster's order of devices");
}

// Whether exact has the value, feasible or not, with its certificate; says what differs.
void expect_equals_all(TinyCase& c, const std::string& what) {
  const BestOfAll all = testing_support::try_all(c.problem);
  for (const auto objective : {plan::Objective::throughput, plan::Objective::bottleneck}) {
    c.problem.objective = objective;
    const plan::PlanSet plans = run(c.problem);
    ASSERT_EQ(plans.feasible(), all.any) << what;
    if (!all.any) {
      EXPECT_FALSE(plans.refusals().empty()) << what;
      continue;
    }
    const double least = objective == plan::Objective::throughput ? all.iteration_s : all.bottleneck_s;
    const plan::PlanReport& report = plans.best(objective).report;
    EXPECT_NEAR(*report.objective_value, least, 1e-9 * least) << what << ' ' << plan::name(objective);
    EXPECT_EQ(report.certificate,
              fmt::format("the best of {}: {:.4g} {}", class_of(c), *report.objective_value, report.objective_unit))
        << what;
    if (class_of(c) == "all plans") {
      EXPECT_EQ(report.bound, report.objective_value) << what;
      EXPECT_EQ(report.optimality_gap, 0.0) << what;
      EXPECT_EQ(report.bound_source, "exact optimum") << what;
    } else {
      EXPECT_EQ(report.bound, plan::proven_bound(c.problem)->value) << what;
    }
    for (const plan::Candidate& candidate : plans.candidates()) {
      EXPECT_THAT(plan::validate(candidate.plan, c.graph, {c.cluster.size(), c.problem.batch}), testing::IsEmpty());
    }
  }
}

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

TEST(Exact, ARefusalSaysHowManyIdealsAreTooMany) {
  TinyCase c(dag(5, 0, 1), 1, 1);  // 32 ideals
  c.problem.stages.reset();
  EXPECT_TRUE(run(c.problem, 32).refusals().empty());
  const plan::PlanSet plans = run(c.problem, 31);
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
