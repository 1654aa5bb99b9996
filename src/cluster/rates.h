// Rates in cluster files, which zero is not one of.
#pragma once

#include "base/units.h"
#include "config/field.h"

namespace millrace::cluster {

/// A bandwidth, or the word `unlimited`.
BytesPerSecond read_bandwidth(const config::Field& field);

FlopsPerSecond read_compute_rate(const config::Field& field);

}  // namespace millrace::cluster
