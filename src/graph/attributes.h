// Settings of one operator (stride, heads, …) by name.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace millrace {

using Attribute = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>>;

/// "true", "3", "1e-05", "erf", "[3, 3]": different values of one type never read the same.
std::string format(const Attribute& value);

/// "boolean", "integer", "real", "text", "list of integers".
std::string_view type_name(const Attribute& value);

/// Attributes by name. The getters throw InvalidInput when the name is missing or of another type.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, Attribute>> items);

  void set(std::string name, Attribute value);
  const Attribute* find(std::string_view name) const;  ///< null when it is missing
  bool has(std::string_view name) const { return find(name) != nullptr; }

  bool boolean(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;  ///< an integer counts as a real
  const std::string& text(std::string_view name) const;
  const std::vector<std::int64_t>& integers(std::string_view name) const;

  const std::vector<std::pair<std::string, Attribute>>& all() const { return items_; }  ///< by name

 private:
  std::vector<std::pair<std::string, Attribute>> items_;  // few: a list is smaller and faster than a tree
};

}  // namespace millrace
