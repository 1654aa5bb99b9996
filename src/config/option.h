// Option records: what a setting is called, what it means, which values it takes and what it is when not given.
// One record serves the YAML check, the command line's help, the documentation and the listing of a registry.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

namespace millrace::config {

struct Boolean {};
struct Text {};
/// Decimal digits with an optional sign; bounds are inclusive.
struct Integer {
  std::int64_t minimum = std::numeric_limits<std::int64_t>::min();
  std::int64_t maximum = std::numeric_limits<std::int64_t>::max();
};
/// Bounds are inclusive.
struct Real {
  double minimum = std::numeric_limits<double>::lowest();
  double maximum = std::numeric_limits<double>::max();
};
/// One of a closed list of words.
struct OneOf {
  std::vector<std::string> words;
};
/// A list of integers, each within the bounds: [512, 512].
struct IntegerList {
  std::int64_t minimum = std::numeric_limits<std::int64_t>::min();
  std::int64_t maximum = std::numeric_limits<std::int64_t>::max();
};
struct Duration {};  ///< a number with a unit of time: 10 us
struct Size {};      ///< a number with a unit of size: 12 GiB

using OptionType = std::variant<Boolean, Text, Integer, Real, OneOf, IntegerList, Duration, Size>;

/// One setting. `standard` is its default, written as in YAML; empty text means that it must be given.
struct Option {
  std::string name;
  std::string text;
  OptionType type;
  std::string standard;
};

using Options = std::vector<Option>;

/// "integer, at least 1", "one of: a, b", … : what a value may be, for errors and documentation.
std::string allowed(const OptionType& type);

}  // namespace millrace::config
