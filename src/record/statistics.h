// Means with confidence intervals, and whether two samples differ.
#pragma once

#include <cstddef>
#include <span>

namespace millrace::record {

struct Sample {
  std::size_t count = 0;
  double mean = 0;
  double deviation = 0;  ///< of the values, with count − 1; 0 for fewer than two
};

Sample sample_of(std::span<const double> values);

/// Half the width of the interval that holds the true mean with probability 0.95 (Student's t); 0 for fewer than two
/// values, which tell nothing about it.
double half_width_95(const Sample& sample);

/// Probability that means at least this far apart come from equal ones (Welch's t-test, two-sided); 1 where a sample
/// has fewer than two values. Two samples without any deviation differ if their means do.
double welch_p(const Sample& a, const Sample& b);

/// Distribution function of Student's t with `freedom` degrees, for t of 0 or more.
double student_cdf(double t, double freedom);

}  // namespace millrace::record
