// docs/np_completeness.md as code: PARTITION becomes a question about two stages, and exact answers it.
#include <gtest/gtest.h>

#include <numeric>

#include "partitioners/common/max_load/exact.h"
#include "tests/partitioners/max_load/cases.h"

namespace millrace::partitioners {
namespace {

using testing_support::Split;
using testing_support::SplitCase;

// One operator a number, no edges, two devices: a load of half the sum exists iff the numbers can be halved.
Split reduction(const std::vector<int>& numbers) {
  Split split;
  for (const int number : numbers) split.model.ops.push_back({static_cast<double>(number), 0, 0, true, 1});
  split.model.accelerators = 2;
  return split;
}

// What exact answers to "is there a split into two stages of load at most half the sum".
bool decided(const std::vector<int>& numbers) {
  const SplitCase c(reduction(numbers));
  plan::ClosedFormEvaluator evaluate(c.problem);
  const plan::PlanSet plans = max_load_exact(c.problem, std::chrono::steady_clock::time_point::max(), evaluate);
  const plan::PlanReport& report = plans.best(c.problem.objective).report;
  EXPECT_EQ(report.bound_source, "exact optimum over convex stages");
  EXPECT_EQ(*report.bound, *report.objective_value);
  return 2 * *report.objective_value <= std::accumulate(numbers.begin(), numbers.end(), 0);
}

// By sums of subsets, in the numbers' size (pseudo-polynomial).
bool can_be_halved(const std::vector<int>& numbers) {
  const int sum = std::accumulate(numbers.begin(), numbers.end(), 0);
  std::vector<bool> reached(static_cast<std::size_t>(sum) + 1, false);
  reached[0] = true;
  for (const int number : numbers) {
    for (int s = sum; s >= number; --s) {
      if (reached[static_cast<std::size_t>(s - number)]) reached[static_cast<std::size_t>(s)] = true;
    }
  }
  return sum % 2 == 0 && reached[static_cast<std::size_t>(sum / 2)];
}

TEST(NpCompleteness, ExactSolvesPartitionThroughTheReduction) {
  EXPECT_TRUE(decided({3, 1, 1, 2, 2, 1}));  // 3 + 2 = 5
  EXPECT_TRUE(decided({7, 7}));
  EXPECT_TRUE(decided({11, 10, 9, 8, 7, 6, 1}));  // 26
  EXPECT_FALSE(decided({3, 3, 3, 5}));            // 14, but no 7
  EXPECT_FALSE(decided({1, 2}));
  EXPECT_FALSE(decided({8, 8, 8, 6, 6, 6, 4}));  // 46, half of which is odd; all are even
  EXPECT_FALSE(decided({5}));
}

TEST(NpCompleteness, EveryAnswerIsThatOfTheSumsOfSubsets) {
  int yes = 0, no = 0;
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    const Random random(seed, "partition");
    std::vector<int> numbers;
    const auto count = 2 + random.below(7, 0);
    for (std::uint64_t i = 0; i < count; ++i) numbers.push_back(1 + static_cast<int>(random.below(30, i + 1)));
    const bool expected = can_be_halved(numbers);
    EXPECT_EQ(decided(numbers), expected) << seed;
    ++(expected ? yes : no);
  }
  EXPECT_GT(yes, 10);
  EXPECT_GT(no, 15);
}

// Without width there is no hardness: on a chain the same numbers have few ideals, whatever they are.
TEST(NpCompleteness, ChainsAreEasy) {
  Split split = reduction(std::vector<int>(2000, 1));
  split.edges = testing_support::chain_edges(2000);
  const SplitCase c(split);
  plan::ClosedFormEvaluator evaluate(c.problem);
  const plan::PlanSet plans = max_load_exact(c.problem, std::chrono::steady_clock::time_point::max(), evaluate);
  EXPECT_EQ(*plans.best(c.problem.objective).report.objective_value, 1000);
}

}  // namespace
}  // namespace millrace::partitioners
