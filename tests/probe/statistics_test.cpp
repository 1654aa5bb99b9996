// Medians and quartiles of a few values.
#include "probe/statistics.h"

#include <gtest/gtest.h>

namespace millrace::probe {
namespace {

TEST(Summary, MedianAndTheDistanceOfTheQuartiles) {
  EXPECT_EQ(summary({3}), (cost::Measured{3_s, 0_s}));
  EXPECT_EQ(summary({9, 1, 5, 3, 7}), (cost::Measured{5_s, 4_s}));  // quartiles 3 and 7
  EXPECT_EQ(summary({4, 1, 3, 2}), (cost::Measured{Seconds(2.5), Seconds(1.5)}));
  EXPECT_EQ(summary({1, 1, 1, 100, 1}), (cost::Measured{1_s, 0_s}));  // one that was disturbed
}

}  // namespace
}  // namespace millrace::probe
