// What repeated measurements come down to.
#pragma once

#include <vector>

#include "cost/profile.h"

namespace millrace::probe {

/// The middle, and the distance between the quartiles; between two values a line. \pre `seconds` is not empty.
cost::Measured summary(std::vector<double> seconds);

}  // namespace millrace::probe
