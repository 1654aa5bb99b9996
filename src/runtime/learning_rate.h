// The learning rate of each iteration.
#pragma once

#include <cstdint>

#include "runtime/train_options.h"

namespace millrace::runtime {

/// Learning rate of `iteration` (from 0) of `total`, for the optimizer's rate `base`.
double learning_rate(const LearningRateOptions& options, double base, std::int64_t iteration, std::int64_t total);

}  // namespace millrace::runtime
