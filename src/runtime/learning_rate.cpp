// Constant, step and cosine rates after a linear warm-up.
#include "runtime/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace millrace::runtime {

double learning_rate(const LearningRateOptions& options, double base, std::int64_t iteration, std::int64_t total) {
  if (iteration < options.warmup) {
    return base * static_cast<double>(iteration + 1) / static_cast<double>(options.warmup);
  }
  const std::int64_t done = iteration - options.warmup;
  switch (options.kind) {
    case ScheduleKind::constant:
      return base;
    case ScheduleKind::step:
      return base * std::pow(options.factor, static_cast<double>(done / options.every));
    case ScheduleKind::cosine: {
      const std::int64_t length = std::max<std::int64_t>(1, total - options.warmup);
      const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(length));
      return options.minimum + (base - options.minimum) * 0.5 * (1.0 + std::cos(std::numbers::pi * part));
    }
  }
  return base;
}

}  // namespace millrace::runtime
