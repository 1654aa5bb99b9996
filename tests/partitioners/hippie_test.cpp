// hippie: most samples per second and byte under caps on memory; for other objectives as dp.
#include "partitioners/hippie.h"

#include <gmock/gmock.h>

#include "partitioners/dp.h"
#include "partitioners/registry.h"
#include "tests/partitioners/random_graphs.h"
#include "tests/plan/cost_case.h"

namespace millrace::partitioners {
namespace {

using testing_support::cost_chain;
using testing_support::CostCase;
using testing_support::Machine;

plan::Candidate best_of(const std::string& name, const plan::Problem& problem, int caps = 0) {
  const Entry& entry = by_name(name);
  config::Values options = config::defaults(entry.options);
  if (caps > 0) options.set("caps", std::int64_t{caps});
  plan::ClosedFormEvaluator evaluate(problem);
  return entry.partition(problem, options, evaluate).best(problem.objective);
}

const Machine kFour{.speeds = {1, 1, 1, 1}, .link = {BytesPerSecond(1000), Seconds(0.01)}};

TEST(Hippie, ALessThanFastestPlanMayBeWorthItsMemory) {
  // Saved activations pile up in front: the fastest cut has equal times, the most efficient gives the front less.
  GraphBuilder builder("front-heavy");
  std::vector<TensorId> last;
  for (int i = 0; i < 12; ++i) {
    last = {builder.add_cost(fmt::format("n{}", i), last,
                             {.forward_s = 1,
                              .backward_input_s = 2,
                              .parameter_bytes = 8,
                              .output_bytes = 1,
                              .saved_bytes = i < 6 ? 60 : 10})};
  }
  CostCase c(builder.build(), kFour, 8, 8);
  c.problem.pipelines = 1;
  c.problem.stages = 4;
  c.problem.objective = plan::Objective::memory_efficiency;
  const plan::PlanReport most = best_of("hippie", c.problem).report;
  const plan::PlanReport fastest = best_of("hippie", c.problem, 1).report;  // one cap: that of the fastest plan
  EXPECT_GT(most.memory_efficiency, fastest.memory_efficiency);
  EXPECT_LT(most.peak_memory_bytes, fastest.peak_memory_bytes);
  EXPECT_GT(most.iteration_time_s, fastest.iteration_time_s);
  EXPECT_EQ(most.partitioner, "hippie");
}

TEST(Hippie, IsNeverLessEfficientThanDpOrEqualParameters) {
  for (std::uint64_t seed = 1; seed < 7; ++seed) {
    for (const char* schedule : {"1f1b", "gpipe"}) {
      CostCase c(testing_support::random_graph(14, seed, 3), kFour, 8, 4);
      c.problem.schedule = schedule;
      c.problem.objective = plan::Objective::memory_efficiency;
      const double ours = best_of("hippie", c.problem).report.memory_efficiency;
      EXPECT_GE(ours, best_of("dp", c.problem).report.memory_efficiency * (1 - 1e-9)) << seed;
      EXPECT_GE(ours, best_of("parameter_equal", c.problem).report.memory_efficiency * (1 - 1e-9)) << seed;
    }
  }
}

TEST(Hippie, PlansForTimeAsDpDoes) {
  CostCase c(testing_support::random_graph(14, 5, 3), kFour, 8, 4);
  EXPECT_EQ(best_of("hippie", c.problem).plan, best_of("dp", c.problem).plan);
}

}  // namespace
}  // namespace millrace::partitioners
