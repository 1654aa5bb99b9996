// Settings of one operator (stride, heads, …) by name.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
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
  Attributes(std::initializer_list<std::pair<const std::string, Attribute>> items) : items_(items) {}

  void set(std::string name, Attribute value) { items_.insert_or_assign(std::move(name), std::move(value)); }
  bool has(std::string_view name) const { return items_.find(name) != items_.end(); }

  bool boolean(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;  ///< an integer counts as a real
  const std::string& text(std::string_view name) const;
  const std::vector<std::int64_t>& integers(std::string_view name) const;

  const std::map<std::string, Attribute, std::less<>>& all() const { return items_; }

 private:
  std::map<std::string, Attribute, std::less<>> items_;
};

}  // namespace millrace
