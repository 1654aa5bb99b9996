// Devices dealt into groups of about equal speed, and rows dealt to groups by what they get through (METHODS 6,
// device-aware groups).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace millrace::partitioners {

/// Groups of devices, each ascending, at least `least` of them in each; what is small is the ratio of the largest sum
/// of speeds to the smallest. Best for up to 10 devices, beyond that largest first and then swaps. Devices of equal
/// speed fill one group after the other, so that groups keep to nodes where they can.
/// \pre groups · least ≤ speeds; speeds are positive.
std::vector<std::vector<int>> deal_devices(std::span<const double> speeds, int groups, int least);

/// Part of the time that shares by speed save against equal shares on these devices when work divides without loss:
/// 1 − n · slowest / sum.
double ideal_gain(std::span<const double> speeds);

/// `total` rows by weight, by largest remainder, in multiples of `unit` but for the last group that gets the rest; at
/// least `least` each and at most the group's cap, what is over going to the others by their weights.
/// None: the caps are below the total, or the total below what all get at least.
std::optional<std::vector<std::int64_t>> deal_rows(std::int64_t total, std::span<const double> weights,
                                                   std::span<const std::int64_t> caps, std::int64_t least,
                                                   std::int64_t unit);

}  // namespace millrace::partitioners
