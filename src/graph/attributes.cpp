// Typed access to an operator's attributes, and their text.
#include "graph/attributes.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/errors.h"

namespace millrace {
namespace {

constexpr std::array<std::string_view, std::variant_size_v<Attribute>> kTypeNames{"boolean", "integer", "real", "text",
                                                                                  "list of integers"};

const Attribute& require(const Attributes& attributes, std::string_view name) {
  const Attribute* found = attributes.find(name);
  if (found == nullptr) throw InvalidInput(fmt::format("attribute '{}' must be given", name));
  return *found;
}

[[noreturn]] void refuse_type(std::string_view name, const Attribute& value, std::string_view allowed) {
  throw InvalidInput(
      fmt::format("attribute '{}': found {} ({}), allowed: {}", name, format(value), type_name(value), allowed));
}

template <class Type>
const Type& get(const Attributes& attributes, std::string_view name) {
  const Attribute& value = require(attributes, name);
  if (const Type* typed = std::get_if<Type>(&value)) return *typed;
  refuse_type(name, value, type_name(Attribute(Type{})));
}

}  // namespace

std::string_view type_name(const Attribute& value) { return kTypeNames[value.index()]; }

std::string format(const Attribute& value) {
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
    return fmt::format("[{}]", fmt::join(*list, ", "));
  }
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  return std::get<std::string>(value);
}

Attributes::Attributes(std::initializer_list<std::pair<std::string, Attribute>> items) {
  for (const auto& [name, value] : items) set(name, value);
}

void Attributes::set(std::string name, Attribute value) {
  const auto at = std::lower_bound(items_.begin(), items_.end(), name,
                                   [](const auto& item, const std::string& key) { return item.first < key; });
  if (at != items_.end() && at->first == name) {
    at->second = std::move(value);
  } else {
    items_.emplace(at, std::move(name), std::move(value));
  }
}

const Attribute* Attributes::find(std::string_view name) const {
  for (const auto& [key, value] : items_) {
    if (key == name) return &value;
  }
  return nullptr;
}

bool Attributes::boolean(std::string_view name) const { return get<bool>(*this, name); }
std::int64_t Attributes::integer(std::string_view name) const { return get<std::int64_t>(*this, name); }
const std::string& Attributes::text(std::string_view name) const { return get<std::string>(*this, name); }
const std::vector<std::int64_t>& Attributes::integers(std::string_view name) const {
  return get<std::vector<std::int64_t>>(*this, name);
}

double Attributes::real(std::string_view name) const {
  const Attribute& value = require(*this, name);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  return get<double>(*this, name);
}

}  // namespace millrace
