// The exact partitioner against all plans of its class, as the tests of some graphs and of all hold it.
#pragma once

#include <string>

#include <gmock/gmock.h>

#include "partitioners/exact.h"
#include "plan/bounds.h"
#include "plan/validate.h"
#include "tests/partitioners/tiny_problems.h"

namespace millrace::partitioners {

inline plan::PlanSet run_exact(const plan::Problem& problem, std::int64_t max_ideals = 1000) {
  config::Values options = config::defaults(exact_options());
  options.set("max_ideals", max_ideals);
  options.set("time_limit", Seconds(3600));  // a machine that does other things stops no search
  plan::ClosedFormEvaluator evaluate(problem);
  return exact(problem, options, evaluate);
}

/// What exact looks through, as its certificate has it.
inline std::string class_of(const testing_support::TinyCase& c) {
  bool alike = c.cluster.nodes().size() == 1;
  for (int device = 1; device < c.cluster.size(); ++device) {
    alike = alike && c.cluster.device(device) == c.cluster.device(0);
  }
  const bool one = c.problem.pipelines.value_or(c.cluster.size()) == 1 || c.problem.batch < 2 * c.problem.micro_batches;
  if (one && alike) return "all plans";
  return fmt::format("all plans with {}{}", one ? "one pipeline" : "equal pipelines",
                     alike ? "" : " in the cluster's order of devices");
}

/// Whether exact has the value, feasible or not, with its certificate; says what differs.
inline void expect_equals_all(testing_support::TinyCase& c, const std::string& what) {
  const testing_support::BestOfAll all = testing_support::try_all(c.problem);
  for (const auto objective : {plan::Objective::throughput, plan::Objective::bottleneck}) {
    c.problem.objective = objective;
    const plan::PlanSet plans = run_exact(c.problem);
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
      EXPECT_DOUBLE_EQ(*report.bound, plan::proven_bound(c.problem)->value) << what;
    }
    for (const plan::Candidate& candidate : plans.candidates()) {
      EXPECT_THAT(plan::validate(candidate.plan, c.graph, {c.cluster.size(), c.problem.batch}), testing::IsEmpty());
    }
  }
}

}  // namespace millrace::partitioners
