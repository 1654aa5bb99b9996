// Rates in cluster files, which zero is not one of.
#pragma once

#include "base/units.h"
#include "config/field.h"
#include "config/node.h"

namespace millrace::cluster {

/// A bandwidth, or the word `unlimited`.
BytesPerSecond read_bandwidth(const config::Field& field);

/// The shortest text that reads back as the same bandwidth, in B/s.
config::Node write_bandwidth(BytesPerSecond bandwidth);

FlopsPerSecond read_compute_rate(const config::Field& field);

}  // namespace millrace::cluster
