// Errors, ranks and regret by hand.
#include "planner/prediction_error.h"

#include <cmath>

#include <gtest/gtest.h>

namespace millrace::planner {
namespace {

TEST(Spearman, EqualReversedAndTied) {
  EXPECT_DOUBLE_EQ(spearman({1, 2, 3, 4}, {10, 20, 30, 40}), 1);
  EXPECT_DOUBLE_EQ(spearman({1, 2, 3, 4}, {4, 3, 2, 1}), -1);
  // Ranks 0 1.5 1.5 3 against 0 1 2 3: 4.5 / sqrt(4.5 · 5).
  EXPECT_DOUBLE_EQ(spearman({1, 2, 2, 3}, {1, 2, 3, 4}), 4.5 / std::sqrt(4.5 * 5));
  EXPECT_EQ(spearman({1, 1, 1}, {1, 2, 3}), 0);
}

TEST(Summary, ErrorsRegretAndTheConstantPredictor) {
  // Errors +10 %, −20 %, 0 and +50 %; of the first job the slower run is predicted fastest.
  const ErrorSummary summary = summarize({{"a", "m", "x", 11, 10, 1000},
                                          {"b", "m", "x", 8, 10.5, 1050},
                                          {"c", "m", "y", 5, 5, 500},
                                          {"d", "n", "z", 3, 2, 400}});
  EXPECT_EQ(summary.runs, 4);
  EXPECT_NEAR(summary.mape, (0.1 + 2.5 / 10.5 + 0 + 0.5) / 4, 1e-12);
  EXPECT_NEAR(summary.median, 0.1, 1e-12);
  EXPECT_NEAR(summary.p90, 0.5, 1e-12);
  EXPECT_EQ(summary.worst_id, "d");
  EXPECT_NEAR(summary.regret, 0.05, 1e-12);
  ASSERT_EQ(summary.models.size(), 1u);
  EXPECT_EQ(summary.models[0].runs, 3);
  // 100 operations a second: exact but for d, which then takes 4 instead of 2.
  EXPECT_DOUBLE_EQ(summary.constant_rate, 100);
  EXPECT_DOUBLE_EQ(summary.constant_mape, 0.25);
}

}  // namespace
}  // namespace millrace::planner
