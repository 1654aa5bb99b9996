// METIS and Scotch as baselines: what they leave empty or cyclic is repaired or refused, and they stay quiet (P09).
#include <cstdio>

#include <gmock/gmock.h>

#include "base/random.h"
#include "partitioners/common/library/part_graph.h"
#include "partitioners/common/library/quiet.h"
#include "partitioners/common/repair.h"
#include "partitioners/metis.h"
#include "partitioners/scotch.h"
#include "plan/validate.h"
#include "tests/partitioners/tiny_problems.h"
#include "tests/plan/table_cost.h"

namespace millrace::partitioners {
namespace {

using testing_support::Case;
using testing_support::chain;
using testing_support::ladder;

struct Library {
  const char* name;
  config::Options (*options)();
  plan::PlanSet (*partition)(const plan::Problem&, const config::Values&, plan::Evaluator&);
};

class EveryLibrary : public testing::TestWithParam<Library> {
 protected:
  static plan::PlanSet run(const plan::Problem& problem) {
    plan::ClosedFormEvaluator evaluate(problem);
    return GetParam().partition(problem, config::defaults(GetParam().options()), evaluate);
  }
};

TEST_P(EveryLibrary, LeavesNoStageEmpty) {
  const std::vector<double> ends_heavy{50, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 50};
  for (const auto& [times, stages] : {std::pair{std::vector<double>(5, 1.0), 4}, {ends_heavy, 6}, {{0, 0, 0, 0}, 3}}) {
    Case c(chain(static_cast<int>(times.size())), std::vector<double>(static_cast<std::size_t>(stages), 1.0), times,
           12);
    c.problem.pipelines = 1;
    c.problem.stages = stages;
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const plan::PlanSet plans = run(c.problem);
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    ASSERT_EQ(plans.candidates().size(), 1U);
    const plan::Candidate& candidate = plans.candidates()[0];
    EXPECT_THAT(plan::validate(candidate.plan, c.graph, {stages, c.problem.batch}), testing::IsEmpty());
    EXPECT_EQ(candidate.plan.pipelines[0].stages.size(), static_cast<std::size_t>(stages));
    EXPECT_EQ(candidate.report.partitioner, GetParam().name);
  }
}

TEST_P(EveryLibrary, RefusesMoreStagesThanOperators) {
  Case c(chain(5), std::vector<double>(8, 1.0), std::vector<double>(5, 1.0), 8);
  c.problem.pipelines = 1;
  c.problem.stages = 8;
  const plan::PlanSet plans = run(c.problem);
  EXPECT_TRUE(plans.candidates().empty());
  ASSERT_EQ(plans.refusals().size(), 1U);
  EXPECT_EQ(plans.refusals()[0].reason, plan::Refusal::more_stages_than_operators);
}

TEST_P(EveryLibrary, AnswersTheSameAgainAndToAnySeed) {
  Case c(ladder(30), {1, 1, 1, 1}, std::vector<double>(61, 1.0), 8, 4, 0.01);
  c.problem.pipelines = 1;
  c.problem.stages = 4;
  std::vector<Plan> plans;
  for (const std::uint64_t seed : {1ULL, 2ULL, 1ULL, ~0ULL}) {
    c.problem.seed = seed;
    plans.push_back(run(c.problem).best(c.problem.objective).plan);
  }
  EXPECT_EQ(plans[0], plans[2]);
}

TEST_P(EveryLibrary, CutsAChainOfEqualOperatorsEvenly) {
  Case c(chain(64), {1, 1, 1, 1}, std::vector<double>(64, 1.0), 8, 4);
  c.problem.pipelines = 1;
  c.problem.stages = 4;
  EXPECT_LE(run(c.problem).best(c.problem.objective).report.bottleneck_s, 17.0);  // 16 at best, 3 % more allowed
}

INSTANTIATE_TEST_SUITE_P(Libraries, EveryLibrary,
                         testing::Values(Library{"metis", metis_options, metis},
                                         Library{"scotch", scotch_options, scotch}),
                         [](const auto& info) { return info.param.name; });

TEST(Repair, AnyPartsOfAnyGraphBecomeStages) {
  for (std::uint64_t number = 0; number < 2000; ++number) {
    const Random random(5, "parts", number);
    const int size = 1 + static_cast<int>(random.below(7, 0));
    const Graph graph = testing_support::dag(size, random.below(testing_support::dag_count(size), 1), 1);
    const OpEdges edges = successors(graph);
    const Order order = topological_order(graph, edges, TieBreak::depth_first);
    const int count = 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(size), 2));
    Parts parts;
    std::vector<double> weights;
    for (std::uint64_t op = 0; op < static_cast<std::uint64_t>(size); ++op) {
      parts.push_back(static_cast<int>(random.below(static_cast<std::uint64_t>(count), 10 + op)));
      weights.push_back(static_cast<double>(random.below(3, 30 + op)));
    }
    const std::vector<Parts> results = repaired(edges, parts, count, order, weights);
    ASSERT_FALSE(results.empty());
    for (const Parts& result : results) {
      EXPECT_EQ(fault_of(edges, result, count), "") << number;
      for (OpId op = 0; op < graph.size(); ++op) {
        for (const OpId next : edges.of(op)) {
          EXPECT_LE(result[static_cast<std::size_t>(op)], result[static_cast<std::size_t>(next)]) << number;
        }
      }
    }
    if (fault_of(edges, parts, count).empty()) {  // sound: the same division, renumbered
      const Parts& last = results.back();
      for (std::size_t a = 0; a < parts.size(); ++a) {
        for (std::size_t b = 0; b < a; ++b) EXPECT_EQ(parts[a] == parts[b], last[a] == last[b]) << number;
      }
    }
  }
}

TEST(Repair, TellsWhatIsWrong) {
  const Graph graph = chain(4);
  const OpEdges edges = successors(graph);
  EXPECT_EQ(fault_of(edges, std::vector<int>{1, 1, 0, 0}, 2), "");
  EXPECT_EQ(fault_of(edges, std::vector<int>{2, 2, 0, 0}, 3), "1 of 3 parts are empty");
  EXPECT_EQ(fault_of(edges, std::vector<int>{0, 1, 0, 2}, 3), "2 of 3 parts need each other");
}

TEST(PartGraph, WeightsAreWholeAndTheirSumsStaySmall) {
  const Graph graph = ladder(3);
  const auto size = static_cast<std::size_t>(graph.size());
  for (const double unit : {1e-12, 1.0, 1e15}) {
    std::vector<double> seconds(size, unit);
    seconds[0] = 1e-9 * unit;
    seconds[1] = 0;
    const library::PartGraph parts = library::part_graph(graph, seconds, 4);
    EXPECT_EQ(parts.weights[0], 1);
    EXPECT_EQ(parts.weights[1], 0);
    std::int64_t sum = 0;
    for (const std::int32_t weight : parts.weights) sum += weight;
    EXPECT_GT(sum, 1 << 27);
    EXPECT_LT(sum, 1 << 29);
    EXPECT_EQ(parts.ends.size(), parts.edge_weights.size());
    EXPECT_EQ(parts.ends.size(), 2U * 9U);  // three edges a block, seen from both ends
  }
  const library::PartGraph zeros = library::part_graph(graph, std::vector<double>(size, 0.0), 4);
  EXPECT_THAT(zeros.weights, testing::Each(1));
}

TEST(Quiet, GivesTheStreamsBack) {
  testing::internal::CaptureStdout();
  {
    const library::Quiet quiet;
    std::puts("dropped");
  }
  std::puts("kept");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "kept\n");
}

}  // namespace
}  // namespace millrace::partitioners
