// Plain numbers as configuration files may write them: decimal, without the surprises of YAML 1.1 (010 as eight).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace millrace::config {

enum class NumberFault { none, syntax, leading_zero, too_large, too_small };

template <class Number>
struct ParsedNumber {
  Number value{};
  NumberFault fault = NumberFault::none;
};

/// Optional sign and decimal digits; no leading zero, point, exponent or underscore.
ParsedNumber<std::int64_t> parse_integer(std::string_view text);

/// Optional sign, digits with at most one point, optional exponent: 1e-4, .5, 5. Infinity, nan and what a double
/// cannot hold at full precision (beyond its range, or so small that digits are lost) are faults.
ParsedNumber<double> parse_real(std::string_view text);

/// Length of the longest start of `text` that has the form of a real; 0 if there is none.
std::size_t number_length(std::string_view text);

/// What to say after "allowed: …": " (no leading zero)", or nothing for a plain mistake.
std::string_view hint(NumberFault fault);

}  // namespace millrace::config
