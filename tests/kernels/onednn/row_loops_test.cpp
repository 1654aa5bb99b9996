// Sums over the columns of a matrix do not depend on how threads share them.
#include "kernels/onednn/row_loops.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace millrace::kernels::onednn::testing {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr int kThreads = 1;  // ThreadSanitizer does not know libgomp's barriers
#else
constexpr int kThreads = 3;
#endif
constexpr std::int64_t kRows = 301, kColumns = 530;  // more than a block of rows and a strip of columns

TEST(RowLoops, ColumnSumsDoNotDependOnTheNumberOfThreads) {
  const Random random(5, "columns");
  std::vector<float> x(kRows * kColumns);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(random.normal(i));
  std::vector<float> one(kColumns, 0.5F), team = one;
  add_column_sums(1, x.data(), kRows, kColumns, one.data());
  add_column_sums(kThreads, x.data(), kRows, kColumns, team.data());
  EXPECT_EQ(one, team);
  for (std::size_t c = 0; c < one.size(); ++c) {
    double sum = 0.5;
    for (std::size_t r = 0; r < kRows; ++r) sum += static_cast<double>(x[r * kColumns + c]);
    ASSERT_NEAR(one[c], sum, 1e-4) << c;
  }
}

}  // namespace
}  // namespace millrace::kernels::onednn::testing
