// Numbers with a unit: sizes, times and rates, as configuration, cluster and graph files write them.
#pragma once

#include <string>
#include <string_view>

#include "base/units.h"

namespace millrace::config {

// A quantity is a number that is not negative, optional spaces, and a unit; without a unit even 0 is refused.
// All throw InvalidInput, "found '12', allowed: … (the unit is missing)", without a position.

/// B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (of 1024). Rounded to whole bytes, which must fit 63 bits;
/// a number of B must be whole.
Bytes parse_size(std::string_view written);

/// ns, us, ms, s, min, h.
Seconds parse_duration(std::string_view written);

/// The units of size per second, GB/s, and those of bits: kb/s, Mb/s, Gb/s, Tb/s (8 bits are a byte).
BytesPerSecond parse_bandwidth(std::string_view written);

/// FLOP/s, GFLOP/s, TFLOP/s, PFLOP/s.
FlopsPerSecond parse_compute_rate(std::string_view written);

/// What each of them allows, in words.
std::string allowed_size();
std::string allowed_duration();
std::string allowed_bandwidth();
std::string allowed_compute_rate();

}  // namespace millrace::config
