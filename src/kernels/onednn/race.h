// The processor time of several ways to do the same work, measured in turn.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/onednn/dnnl_api.h"
#include "kernels/variants.h"

namespace millrace::kernels::onednn {

inline constexpr double kEnoughFlops = 2e9;  ///< of a measurement: some ten milliseconds of a core
inline constexpr double kLeastFlops = 2e7;   ///< of work that is worth one

/// A pass in the name of its work.
const char* words(Pass pass);

/// One of the ways, by its name in the tables.
struct Contender {
  std::string variant;
  std::function<void()> run;
};

/// The least time of each, of all threads. They run in turn, so that what else the machine does is alike for them.
std::vector<VariantChoice::Time> race(const std::vector<Contender>& contenders);

/// The time of the fastest.
double least_seconds(const std::vector<Contender>& contenders);

/// The fastest, or the first, which is the standard one, unless another is `gain` times as fast.
VariantChoice choose_fastest(const std::vector<Contender>& contenders, double gain);

}  // namespace millrace::kernels::onednn
