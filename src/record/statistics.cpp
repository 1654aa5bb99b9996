// Student's t by the incomplete beta function.
#include "record/statistics.h"

#include <cmath>
#include <limits>

namespace millrace::record {
namespace {

// Continued fraction of the incomplete beta function, by the modified Lentz method.
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr int kMostTerms = 500;
  const auto nonzero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / nonzero(1 - (a + b) * x / (a + 1)), fraction = d;
  for (int m = 1; m <= kMostTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / nonzero(1 + even * d);
    c = nonzero(1 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / nonzero(1 + odd * d);
    c = nonzero(1 + odd / c);
    fraction *= d * c;
    if (std::abs(d * c - 1) < 1e-15) break;
  }
  return fraction;
}

double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace

Sample sample_of(std::span<const double> values) {
  Sample sample;
  sample.count = values.size();
  if (values.empty()) return sample;
  for (const double value : values) sample.mean += value;
  sample.mean /= static_cast<double>(values.size());
  if (values.size() < 2) return sample;
  double squares = 0;
  for (const double value : values) squares += (value - sample.mean) * (value - sample.mean);
  sample.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  return sample;
}

double student_cdf(double t, double freedom) {
  return 1 - 0.5 * incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t));
}

double half_width_95(const Sample& sample) {
  if (sample.count < 2 || sample.deviation <= 0) return 0;
  const auto count = static_cast<double>(sample.count);
  double low = 0, high = 1000;  // the quantile for one degree of freedom is 12.7
  for (int step = 0; step < 100; ++step) {
    const double middle = (low + high) / 2;
    (student_cdf(middle, count - 1) < 0.975 ? low : high) = middle;
  }
  return low * sample.deviation / std::sqrt(count);
}

double welch_p(const Sample& a, const Sample& b) {
  if (a.count < 2 || b.count < 2) return 1;
  const double va = a.deviation * a.deviation / static_cast<double>(a.count);
  const double vb = b.deviation * b.deviation / static_cast<double>(b.count);
  const double difference = std::abs(a.mean - b.mean);
  if (va + vb <= 0) return difference > 0 ? 0 : 1;
  const double freedom =
      (va + vb) * (va + vb) / (va * va / static_cast<double>(a.count - 1) + vb * vb / static_cast<double>(b.count - 1));
  return 2 * (1 - student_cdf(difference / std::sqrt(va + vb), freedom));
}

}  // namespace millrace::record
