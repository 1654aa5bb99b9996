// Daly's renewal formula; the best interval by golden section, since the fraction has one peak.
#include "sim/goodput.h"

#include <cmath>

namespace millrace::sim {
namespace {

double fraction(double rate, double restart, double checkpoint, double interval) {
  return interval / ((1 / rate + restart) * std::expm1(rate * (interval + checkpoint)));
}

// Between a hundredth and a hundred times Young's √(2c/λ), on a logarithmic scale.
double best_interval(double rate, double restart, double checkpoint) {
  constexpr double kGolden = 0.6180339887498949;
  const double young = std::log(std::sqrt(2 * checkpoint / rate));
  double low = young - std::log(100.0), high = young + std::log(100.0);
  for (int step = 0; step < 80; ++step) {
    const double a = high - kGolden * (high - low), b = low + kGolden * (high - low);
    if (fraction(rate, restart, checkpoint, std::exp(a)) < fraction(rate, restart, checkpoint, std::exp(b))) {
      low = a;
    } else {
      high = b;
    }
  }
  return std::exp((low + high) / 2);
}

}  // namespace

Goodput goodput(const Failures& failures) {
  const double rate = static_cast<double>(failures.devices) / failures.mean_time_between.value();
  const double restart = failures.restart.value(), checkpoint = failures.checkpoint.value();
  Goodput out;
  out.failures_per_day = rate * 86400;
  double interval = failures.checkpoint_every.value();
  if (interval <= 0 && checkpoint <= 0) {  // checkpoints that cost nothing may be taken all the time
    out.fraction = 1 / (1 + rate * restart);
    return out;
  }
  if (interval <= 0) interval = best_interval(rate, restart, checkpoint);
  out.checkpoint_every = Seconds(interval);
  out.fraction = fraction(rate, restart, checkpoint, interval);
  return out;
}

}  // namespace millrace::sim
