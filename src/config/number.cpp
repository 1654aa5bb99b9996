// Plain numbers as configuration files may write them: decimal, without the surprises of YAML 1.1 (010 as eight).
#include "config/number.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace millrace::config {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t digits_from(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  while (end < text.size() && is_digit(text[end])) ++end;
  return end - begin;
}

bool has_sign(std::string_view text) { return !text.empty() && (text[0] == '-' || text[0] == '+'); }

bool has_leading_zero(std::string_view digits) { return digits.size() > 1 && digits[0] == '0' && is_digit(digits[1]); }

// std::from_chars takes no '+'.
std::string_view without_plus(std::string_view text) { return text[0] == '+' ? text.substr(1) : text; }

}  // namespace

ParsedNumber<std::int64_t> parse_integer(std::string_view text) {
  const std::string_view digits = text.substr(has_sign(text) ? 1 : 0);
  if (digits.empty() || digits_from(digits, 0) != digits.size()) return {0, NumberFault::syntax};
  if (has_leading_zero(digits)) return {0, NumberFault::leading_zero};
  const std::string_view number = without_plus(text);
  std::int64_t value = 0;
  const auto result = std::from_chars(number.data(), number.data() + number.size(), value);
  if (result.ec != std::errc()) return {0, NumberFault::too_large};
  return {value, NumberFault::none};
}

std::size_t number_length(std::string_view text) {
  const std::size_t begin = has_sign(text) ? 1 : 0;
  std::size_t end = begin + digits_from(text, begin);
  std::size_t digits = end - begin;
  if (end < text.size() && text[end] == '.') {
    const std::size_t fraction = digits_from(text, end + 1);
    digits += fraction;
    end += 1 + fraction;
  }
  if (digits == 0) return 0;
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    const std::size_t first = end + 1 + (has_sign(text.substr(end + 1)) ? 1 : 0);
    const std::size_t exponent = digits_from(text, first);
    if (exponent > 0) end = first + exponent;
  }
  return end;
}

ParsedNumber<double> parse_real(std::string_view text) {
  if (text.empty() || number_length(text) != text.size()) return {0.0, NumberFault::syntax};
  const std::string_view number = without_plus(text);
  if (has_leading_zero(number.substr(number[0] == '-' ? 1 : 0))) return {0.0, NumberFault::leading_zero};
  const std::string_view mantissa = number.substr(0, number.find_first_of("eE"));
  const bool is_zero = mantissa.find_first_of("123456789") == std::string_view::npos;
  if (is_zero) return {0.0, NumberFault::none};

  double value = 0.0;
  const auto result = std::from_chars(number.data(), number.data() + number.size(), value);
  // from_chars tells out of range in one code and leaves the value alone: the exponent says which end it is.
  if (result.ec != std::errc()) {
    const bool tiny = number.find("e-") != std::string_view::npos || number.find("E-") != std::string_view::npos ||
                      mantissa.find('.') < mantissa.find_first_of("123456789");
    return {0.0, tiny ? NumberFault::too_small : NumberFault::too_large};
  }
  if (std::isinf(value)) return {0.0, NumberFault::too_large};
  if (std::abs(value) < std::numeric_limits<double>::min()) return {0.0, NumberFault::too_small};
  return {value, NumberFault::none};
}

std::string_view hint(NumberFault fault) {
  switch (fault) {
    case NumberFault::none:
    case NumberFault::syntax:
      return "";
    case NumberFault::leading_zero:
      return " (no leading zero)";
    case NumberFault::too_large:
      return " (too large for 64 bits)";
    case NumberFault::too_small:
      return " (too small for 64 bits)";
  }
  return "";
}

}  // namespace millrace::config
