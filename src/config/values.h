// Settings that were read and checked against their option records; defaults are filled in.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/units.h"
#include "config/option.h"

namespace millrace::config {

using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, Seconds, Bytes>;

/// Values by option name. Asking for a name that is not there, or as another type, is a fault of the program
/// (std::logic_error): the reader has refused such input before.
class Values {
 public:
  void set(std::string name, Value value);
  bool has(std::string_view name) const;

  bool boolean(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  const std::string& text(std::string_view name) const;  ///< Text and OneOf
  const std::vector<std::int64_t>& integers(std::string_view name) const;
  Seconds duration(std::string_view name) const;
  Bytes size(std::string_view name) const;

  const std::map<std::string, Value, std::less<>>& all() const { return values_; }

 private:
  std::map<std::string, Value, std::less<>> values_;
};

/// The defaults of all records that have one.
/// \throws std::logic_error  when a record's default does not satisfy its own type.
Values defaults(const Options& options);

/// Reads one scalar or flow list, written as in YAML, as `type`.
/// \throws InvalidInput  what was found and what is allowed (no position: the caller knows it).
Value parse_value(const OptionType& type, std::string_view written);

}  // namespace millrace::config
