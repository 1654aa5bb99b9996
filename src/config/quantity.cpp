// Numbers with a unit: sizes, times and rates, as configuration, cluster and graph files write them.
#include "config/quantity.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/text.h"
#include "config/number.h"

namespace millrace::config {
namespace {

// value = number × times ÷ over. Both are whole, so that 10 us is the double nearest to 1e-5 (10 × 1e-6 is not).
struct Unit {
  std::string_view name;
  double times;
  double over;
};

constexpr double kKi = 1024.0;
constexpr std::array kSizes{Unit{"B", 1, 1},
                            Unit{"kB", 1e3, 1},
                            Unit{"MB", 1e6, 1},
                            Unit{"GB", 1e9, 1},
                            Unit{"TB", 1e12, 1},
                            Unit{"KiB", kKi, 1},
                            Unit{"MiB", kKi* kKi, 1},
                            Unit{"GiB", kKi* kKi* kKi, 1},
                            Unit{"TiB", kKi* kKi* kKi* kKi, 1}};
constexpr std::array kTimes{Unit{"ns", 1, 1e9}, Unit{"us", 1, 1e6}, Unit{"ms", 1, 1e3},
                            Unit{"s", 1, 1},    Unit{"min", 60, 1}, Unit{"h", 3600, 1}};
constexpr std::array kBandwidths{Unit{"B/s", 1, 1},
                                 Unit{"kB/s", 1e3, 1},
                                 Unit{"MB/s", 1e6, 1},
                                 Unit{"GB/s", 1e9, 1},
                                 Unit{"TB/s", 1e12, 1},
                                 Unit{"KiB/s", kKi, 1},
                                 Unit{"MiB/s", kKi* kKi, 1},
                                 Unit{"GiB/s", kKi* kKi* kKi, 1},
                                 Unit{"TiB/s", kKi* kKi* kKi* kKi, 1},
                                 Unit{"kb/s", 1e3, 8},
                                 Unit{"Mb/s", 1e6, 8},
                                 Unit{"Gb/s", 1e9, 8},
                                 Unit{"Tb/s", 1e12, 8}};
constexpr std::array kComputeRates{Unit{"FLOP/s", 1, 1}, Unit{"GFLOP/s", 1e9, 1}, Unit{"TFLOP/s", 1e12, 1},
                                   Unit{"PFLOP/s", 1e15, 1}};

struct Kind {
  std::string_view what;
  std::string_view example;
  std::span<const Unit> units;
};

constexpr Kind kSize{"size", "12 GiB", kSizes};
constexpr Kind kDuration{"time", "10 us", kTimes};
constexpr Kind kBandwidth{"bandwidth", "25 GB/s", kBandwidths};
constexpr Kind kComputeRate{"compute rate", "15.7 TFLOP/s", kComputeRates};

std::string allowed(const Kind& kind) {
  std::vector<std::string> names;
  for (const Unit& unit : kind.units) names.emplace_back(unit.name);
  return fmt::format("number with a unit of {} ({}), such as {}", kind.what, join(names), kind.example);
}

[[noreturn]] void refuse(const Kind& kind, std::string_view written, std::string_view why) {
  throw InvalidInput(fmt::format("found '{}', allowed: {}{}", written, allowed(kind), why));
}

bool same_letters(std::string_view a, std::string_view b) {
  const auto same = [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

// Only another case or a forgotten '/s' is a likely slip; units are too short for edit distances.
std::string unit_hint(const Kind& kind, std::string_view name) {
  for (const Unit& unit : kind.units) {
    if (same_letters(unit.name, name) || unit.name == fmt::format("{}/s", name)) {
      return fmt::format(" (unknown unit '{}'; did you mean '{}'?)", name, unit.name);
    }
  }
  return fmt::format(" (unknown unit '{}')", name);
}

struct Split {
  std::string_view number;
  const Unit* unit;
};

Split split(const Kind& kind, std::string_view written) {
  const std::size_t length = number_length(written);
  if (length == 0) refuse(kind, written, "");
  const std::string_view number = written.substr(0, length);
  if (const NumberFault fault = parse_real(number).fault; fault != NumberFault::none) {
    refuse(kind, written, hint(fault));
  }
  if (number[0] == '-') refuse(kind, written, " (not negative)");
  std::string_view name = written.substr(length);
  name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
  if (name.empty()) refuse(kind, written, " (the unit is missing)");
  const auto unit = std::find_if(kind.units.begin(), kind.units.end(), [&](const Unit& u) { return u.name == name; });
  if (unit == kind.units.end()) refuse(kind, written, unit_hint(kind, name));
  return {number, &*unit};
}

double parse(const Kind& kind, std::string_view written) {
  const Split parts = split(kind, written);
  const double value = parse_real(parts.number).value * parts.unit->times / parts.unit->over;
  if (std::isinf(value)) refuse(kind, written, hint(NumberFault::too_large));
  return value;
}

}  // namespace

Bytes parse_size(std::string_view written) {
  const Split parts = split(kSize, written);
  const auto scale = static_cast<std::int64_t>(parts.unit->times);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  // Whole numbers stay in integers: a double would lose the last digits of 9007199254740993 B.
  if (const auto whole = parse_integer(parts.number); whole.fault == NumberFault::none) {
    if (whole.value > kMost / scale) refuse(kSize, written, hint(NumberFault::too_large));
    return Bytes(whole.value * scale);
  }
  const double number = parse_real(parts.number).value;
  const double bytes = std::round(number * parts.unit->times);
  if (bytes >= 0x1p63) refuse(kSize, written, hint(NumberFault::too_large));
  const bool is_part_of_a_byte = (scale == 1 && bytes != number) || (bytes == 0.0 && number > 0.0);
  if (is_part_of_a_byte) refuse(kSize, written, " (bytes are whole)");
  return Bytes(static_cast<std::int64_t>(bytes));
}

Seconds parse_duration(std::string_view written) { return Seconds(parse(kDuration, written)); }
BytesPerSecond parse_bandwidth(std::string_view written) { return BytesPerSecond(parse(kBandwidth, written)); }
FlopsPerSecond parse_compute_rate(std::string_view written) { return FlopsPerSecond(parse(kComputeRate, written)); }

std::string allowed_size() { return allowed(kSize); }
std::string allowed_duration() { return allowed(kDuration); }
std::string allowed_bandwidth() { return allowed(kBandwidth); }
std::string allowed_compute_rate() { return allowed(kComputeRate); }

}  // namespace millrace::config
