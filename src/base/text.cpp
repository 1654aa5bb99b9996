// Words for people: nearest names, lists, sizes and durations.
#include "base/text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace millrace {
namespace {

// Optimal string alignment distance: insertions, deletions, replacements and swaps of neighbours cost 1 each.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({row[j - 1] + 1, last[j] + 1, replace});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::optional<std::string> nearest_name(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t kLeastBeginning = 3;
  std::size_t best = std::string_view::npos;
  std::optional<std::string> nearest, longer;
  std::size_t begun = 0;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    const std::size_t longer_size = std::max(word.size(), candidate.size());
    const bool shares_letters = distance < std::max<std::size_t>(2, longer_size);
    if (distance < best && shares_letters && distance <= std::max<std::size_t>(2, longer_size / 3)) {
      best = distance;
      nearest = candidate;
    }
    if (word.size() < kLeastBeginning || !candidate.starts_with(word)) continue;
    ++begun;
    longer = candidate;
  }
  return nearest || begun != 1 ? nearest : longer;
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts.begin(), parts.end(), separator));
}

std::string unknown_name(std::string_view what, std::string_view word, std::span<const std::string> valid) {
  const auto nearest = nearest_name(word, valid);
  const std::string hint = nearest ? fmt::format(" (did you mean '{}'?)", *nearest) : "";
  return fmt::format("unknown {} '{}'{}; valid: {}", what, word, hint, join(valid));
}

bool matches_glob(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0;
  std::size_t star = std::string_view::npos, resume = 0;  // the last '*' and how much of the name it has taken
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string format(Bytes bytes) {
  static constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes.value());
  std::size_t unit = 0;
  while (std::abs(value) >= 1024.0 && unit + 1 < units.size()) {
    value /= 1024.0;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes.value()) : fmt::format("{:.1f} {}", value, units[unit]);
}

std::string format(Seconds seconds) {
  const double value = seconds.value();
  const double size = std::abs(value);
  constexpr double kLong = 1e9;  // some thirty years
  if (size >= kLong) return fmt::format("{:.2e} s", value);
  if (size >= 120.0) return fmt::format("{:.1f} min", value / 60.0);
  if (size >= 1.0 || size == 0.0) return fmt::format("{:.2f} s", value);
  if (size >= 1e-3) return fmt::format("{:.2f} ms", value * 1e3);
  if (size >= 1e-6) return fmt::format("{:.2f} us", value * 1e6);
  return fmt::format("{:.2f} ns", value * 1e9);
}

}  // namespace millrace
