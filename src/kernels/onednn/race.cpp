// Runs the contenders and reads the processor's clock.
#include "kernels/onednn/race.h"

#include <algorithm>
#include <ctime>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/limits.h"

namespace millrace::kernels::onednn {
namespace {

constexpr int kRuns = 4;  // of each, the first of which warms up

double processor_seconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

VariantChoice::Time fastest(const std::vector<VariantChoice::Time>& times) {
  return *std::min_element(times.begin(), times.end(),
                           [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
}

}  // namespace

const char* words(Pass pass) {
  if (pass == Pass::forward) return "forward";
  return pass == Pass::backward_data ? "backward input" : "backward weight";
}

std::vector<VariantChoice::Time> race(const std::vector<Contender>& contenders) {
  std::vector<VariantChoice::Time> times;
  for (const Contender& contender : contenders) times.push_back({contender.variant, kNever});
  for (int run = 0; run < kRuns; ++run) {
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      const double before = processor_seconds();
      contenders[i].run();
      if (run > 0) times[i].seconds = std::min(times[i].seconds, processor_seconds() - before);
    }
  }
#ifdef __GLIBC__
  malloc_trim(0);  // what the calls took for a moment is not counted as memory of the training
#endif
  return times;
}

double least_seconds(const std::vector<Contender>& contenders) { return fastest(race(contenders)).seconds; }

VariantChoice choose_fastest(const std::vector<Contender>& contenders, double gain) {
  VariantChoice choice{{}, race(contenders)};
  const VariantChoice::Time standard = choice.times.front(), best = fastest(choice.times);
  choice.variant = standard.seconds > gain * best.seconds ? best.variant : standard.variant;
  return choice;
}

}  // namespace millrace::kernels::onednn
