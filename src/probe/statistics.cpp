// Quantiles of a few values.
#include "probe/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace millrace::probe {
namespace {

double quantile(const std::vector<double>& sorted, double part) {
  const double at = part * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(std::floor(at));
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

}  // namespace

cost::Measured summary(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return {Seconds(quantile(seconds, 0.5)), Seconds(quantile(seconds, 0.75) - quantile(seconds, 0.25))};
}

}  // namespace millrace::probe
