// Units multiply and divide into the right kinds.
#include "base/units.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(Units, BytesOverRateAreSeconds) { EXPECT_EQ(1_GiB / BytesPerSecond(1024.0 * 1024 * 1024), 1_s); }

TEST(Units, RatioOfTwoIsAPlainNumber) { EXPECT_DOUBLE_EQ(3_MiB / 2_MiB, 1.5); }

TEST(Units, SumsStayExactIn64Bits) { EXPECT_EQ((6000000000_B + 6000000000_B).value(), 12000000000); }

}  // namespace
}  // namespace millrace
