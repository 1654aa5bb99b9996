// What a run's times are measured by.
#pragma once

#include <functional>

#include "base/units.h"

namespace millrace::runtime {

/// Seconds since a moment that stays the same.
using Clock = std::function<Seconds()>;

/// The steady clock of the machine.
Clock steady_clock();

}  // namespace millrace::runtime
