// A small search for few devices, a greedy one with swaps for many.
#include "partitioners/common/groups.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "plan/rows.h"

namespace millrace::partitioners {
namespace {

constexpr int kMostTriedAll = 10;  // 115,975 ways to divide ten devices

using Numbers = std::vector<int>;  // group of each device, fastest first

class Dealer {
 public:
  Dealer(std::span<const double> speeds, int groups, int least)
      : speeds_(speeds.begin(), speeds.end()),
        least_(least),
        sums_(static_cast<std::size_t>(groups), 0.0),
        sizes_(static_cast<std::size_t>(groups), 0) {
    std::sort(speeds_.begin(), speeds_.end(), std::greater<>());
  }

  Numbers run() {
    if (static_cast<int>(speeds_.size()) <= kMostTriedAll) {
      Numbers numbers;
      try_all(numbers, 0);
    } else {
      largest_first();
      while (swap_once()) {
      }
    }
    return best_;
  }
  const std::vector<double>& fastest_first() const { return speeds_; }

 private:
  double ratio() const {
    const auto [least, most] = std::minmax_element(sums_.begin(), sums_.end());
    return *most / *least;
  }

  // Groups are numbered in the order of their first devices, so that no division is met twice.
  void try_all(Numbers& numbers, int used) {
    const int groups = static_cast<int>(sums_.size());
    const int left = static_cast<int>(speeds_.size() - numbers.size());
    int missing = 0;
    for (const int size : sizes_) missing += std::max(0, least_ - size);
    if (missing > left) return;
    if (left == 0) {
      if (best_.empty() || ratio() < best_ratio_) {
        best_ = numbers;
        best_ratio_ = ratio();
      }
      return;
    }
    const double speed = speeds_[numbers.size()];
    for (int group = 0; group < std::min(groups, used + 1); ++group) {
      const auto at = static_cast<std::size_t>(group);
      const double before = sums_[at];
      sums_[at] += speed;
      ++sizes_[at];
      numbers.push_back(group);
      try_all(numbers, std::max(used, group + 1));
      numbers.pop_back();
      --sizes_[at];
      sums_[at] = before;
    }
  }

  void largest_first() {
    int missing = least_ * static_cast<int>(sums_.size());
    for (std::size_t i = 0; i < speeds_.size(); ++i) {
      const bool tight = static_cast<int>(speeds_.size() - i) <= missing;  // every device goes where one is due
      std::size_t slowest = sums_.size();
      for (std::size_t group = 0; group < sums_.size(); ++group) {
        if (tight && sizes_[group] >= least_) continue;
        if (slowest == sums_.size() || sums_[group] < sums_[slowest]) slowest = group;
      }
      if (sizes_[slowest]++ < least_) --missing;
      sums_[slowest] += speeds_[i];
      best_.push_back(static_cast<int>(slowest));
    }
  }

  // Exchanges a device of the fastest group for a slower one of the slowest, where that lessens their difference most.
  bool swap_once() {
    const auto fast = static_cast<int>(std::max_element(sums_.begin(), sums_.end()) - sums_.begin());
    const auto slow = static_cast<int>(std::min_element(sums_.begin(), sums_.end()) - sums_.begin());
    const double gap = sums_[static_cast<std::size_t>(fast)] - sums_[static_cast<std::size_t>(slow)];
    double left = gap * (1 - 1e-9);
    std::size_t give = 0, take = 0;
    for (std::size_t a = 0; a < best_.size(); ++a) {
      if (best_[a] != fast) continue;
      for (std::size_t b = 0; b < best_.size(); ++b) {
        if (best_[b] != slow) continue;
        const double after = std::abs(gap - 2 * (speeds_[a] - speeds_[b]));
        if (after >= left) continue;
        left = after;
        give = a;
        take = b;
      }
    }
    if (give == take) return false;
    const double moved = speeds_[give] - speeds_[take];
    sums_[static_cast<std::size_t>(fast)] -= moved;
    sums_[static_cast<std::size_t>(slow)] += moved;
    std::swap(best_[give], best_[take]);
    return true;
  }

  std::vector<double> speeds_;
  int least_;
  std::vector<double> sums_;
  std::vector<int> sizes_;
  Numbers best_;
  double best_ratio_ = std::numeric_limits<double>::infinity();
};

}  // namespace

std::vector<std::vector<int>> deal_devices(std::span<const double> speeds, int groups, int least) {
  Dealer dealer(speeds, groups, least);
  const Numbers numbers = dealer.run();
  // How many devices of each speed a group has is settled; which of them, goes by their order.
  std::map<double, Numbers> of_speed;
  for (int device = 0; device < static_cast<int>(speeds.size()); ++device) {
    of_speed[speeds[static_cast<std::size_t>(device)]].push_back(device);
  }
  std::vector<std::map<double, int>> counts(static_cast<std::size_t>(groups));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    ++counts[static_cast<std::size_t>(numbers[i])][dealer.fastest_first()[i]];
  }
  std::vector<std::vector<int>> dealt(static_cast<std::size_t>(groups));
  for (auto& [speed, devices] : of_speed) {
    auto next = devices.begin();
    for (std::size_t group = 0; group < dealt.size(); ++group) {
      const int count = counts[group][speed];
      dealt[group].insert(dealt[group].end(), next, next + count);
      next += count;
    }
  }
  for (std::vector<int>& group : dealt) std::sort(group.begin(), group.end());
  std::sort(dealt.begin(), dealt.end());
  return dealt;
}

double ideal_gain(std::span<const double> speeds) {
  const double slowest = *std::min_element(speeds.begin(), speeds.end());
  return 1 - static_cast<double>(speeds.size()) * slowest / std::accumulate(speeds.begin(), speeds.end(), 0.0);
}

std::optional<std::vector<std::int64_t>> deal_rows(std::int64_t total, std::span<const double> weights,
                                                   std::span<const std::int64_t> caps, std::int64_t least,
                                                   std::int64_t unit) {
  const std::size_t groups = weights.size();
  std::vector<std::int64_t> rows(groups, 0);
  std::vector<bool> settled(groups, false);
  for (std::int64_t left = total;;) {
    std::vector<double> open;
    std::vector<std::size_t> who;
    for (std::size_t group = 0; group < groups; ++group) {
      if (settled[group]) continue;
      open.push_back(weights[group]);
      who.push_back(group);
    }
    if (who.empty()) return left == 0 ? std::optional(rows) : std::nullopt;
    if (left < 0) return std::nullopt;
    const std::vector<std::int64_t> units = largest_remainder(left / unit, open);
    for (std::size_t i = 0; i < who.size(); ++i) rows[who[i]] = units[i] * unit;
    // The rest of a unit goes where one unit more takes the least time.
    std::size_t spare = 0;
    for (std::size_t i = 1; i < who.size(); ++i) {
      const auto after = [&](std::size_t k) { return static_cast<double>(rows[who[k]] + unit) / open[k]; };
      if (after(i) < after(spare)) spare = i;
    }
    rows[who[spare]] += left % unit;
    bool again = false;
    for (const std::size_t group : who) {
      const std::int64_t allowed = std::clamp(rows[group], std::min(least, caps[group]), caps[group]);
      if (caps[group] < least) return std::nullopt;
      if (allowed == rows[group]) continue;
      rows[group] = allowed;
      settled[group] = again = true;
      left -= allowed;
    }
    if (!again) return rows;
  }
}

}  // namespace millrace::partitioners
