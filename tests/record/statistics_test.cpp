// Student's t and Welch's test against values of printed tables.
#include "record/statistics.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::record {
namespace {

TEST(Statistics, StudentsQuantilesAreThoseOfTables) {
  // t of 0.975 for 1, 4, 9 and 30 degrees of freedom.
  EXPECT_NEAR(student_cdf(12.706205, 1), 0.975, 1e-7);
  EXPECT_NEAR(student_cdf(2.776445, 4), 0.975, 1e-7);
  EXPECT_NEAR(student_cdf(2.262157, 9), 0.975, 1e-7);
  EXPECT_NEAR(student_cdf(2.042272, 30), 0.975, 1e-7);
  EXPECT_DOUBLE_EQ(student_cdf(0, 3), 0.5);
}

TEST(Statistics, IntervalOfFiveValues) {
  const std::vector<double> values{10, 12, 11, 13, 9};
  const Sample sample = sample_of(values);
  EXPECT_DOUBLE_EQ(sample.mean, 11);
  EXPECT_DOUBLE_EQ(sample.deviation, std::sqrt(2.5));
  EXPECT_NEAR(half_width_95(sample), 2.776445 * std::sqrt(2.5 / 5), 1e-5);
  EXPECT_EQ(half_width_95(sample_of(std::vector<double>{3})), 0);
}

TEST(Statistics, WelchsTest) {
  const std::vector<double> a{27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4};
  const std::vector<double> b{27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5, 24.4};
  EXPECT_NEAR(welch_p(sample_of(a), sample_of(b)), 0.021378, 1e-6);
  EXPECT_EQ(welch_p(sample_of(a), sample_of(std::vector<double>{20})), 1);
  const std::vector<double> ones{1, 1}, twos{2, 2};
  EXPECT_EQ(welch_p(sample_of(ones), sample_of(twos)), 0);
  EXPECT_EQ(welch_p(sample_of(ones), sample_of(ones)), 1);
}

}  // namespace
}  // namespace millrace::record
