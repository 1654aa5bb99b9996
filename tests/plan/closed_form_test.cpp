// METHODS 2: exact makespans and measured fact 1.
#include "plan/closed_form.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/errors.h"

namespace millrace::plan {
namespace {

std::vector<StageSeconds> even(int stages, Seconds forward, Seconds backward) {
  return std::vector<StageSeconds>(static_cast<std::size_t>(stages), StageSeconds{forward, backward});
}

TEST(ClosedForm, ExactMakespansOfEvenStages) {
  EXPECT_EQ(gpipe_time(even(4, 1_s, 2_s), 8), 33_s);
  EXPECT_EQ(one_f_one_b_time(even(4, 1_s, 2_s), 8), 33_s);
  EXPECT_EQ(gpipe_time(even(8, 1_s, 2_s), 16), 69_s);
  EXPECT_EQ(one_f_one_b_time(even(8, 1_s, 2_s), 32), 117_s);
  EXPECT_EQ(gpipe_time(even(4, 4_s, 8_s), 8), 132_s);
  EXPECT_EQ(one_f_one_b_time(even(1, 1_s, 2_s), 1), 3_s);
}

TEST(ClosedForm, GpipeWithSlowestForwardAndBackwardApart) {
  // Recompute on all but the last stage, p = 4, m = 8: 47.5, not the 44 of (m−1) max c + Σc.
  std::vector<StageSeconds> stages(3, StageSeconds{1_s, 3_s});
  stages.push_back({1.5_s, 2.5_s});
  EXPECT_EQ(gpipe_time(stages, 8), 47.5_s);
  EXPECT_EQ(one_f_one_b_time(stages, 8), 44_s);
}

TEST(ClosedForm, LowerBoundNeverExceedsEitherTime) {
  const std::vector<StageSeconds> uneven{{1_s, 2_s}, {3_s, 1_s}, {1_s, 5_s}, {2_s, 2_s}};
  for (std::int64_t m = 1; m < 10; ++m) {
    EXPECT_LE(pipeline_lower_bound(uneven, m), gpipe_time(uneven, m));
    EXPECT_LE(pipeline_lower_bound(uneven, m), one_f_one_b_time(uneven, m));
  }
  EXPECT_EQ(pipeline_lower_bound(uneven, 2), 3_s + 4_s + 6_s + 2.0 * 4_s);
}

TEST(ScheduleTraits, LiveMicroBatchesOfMethodsTable) {
  const ScheduleTraits& gpipe = schedule_traits("gpipe");
  const ScheduleTraits& alternating = schedule_traits("1f1b");
  EXPECT_EQ(gpipe.live(8, 4, 4), 8);
  EXPECT_EQ(alternating.live(8, 4, 4), 4);
  EXPECT_EQ(alternating.live(2, 4, 4), 2);
  EXPECT_EQ(alternating.live(8, 1, 4), 1);
  EXPECT_THROW(schedule_traits("1f2b"), InvalidInput);
}

}  // namespace
}  // namespace millrace::plan
