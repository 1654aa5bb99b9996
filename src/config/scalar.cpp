// Reads the value of an option from a node: the one place where text becomes a number, a word or a quantity.
#include "config/scalar.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/text.h"
#include "config/number.h"
#include "config/quantity.h"

namespace millrace::config {
namespace {

// One overload a type; each returns nothing after it has noted why.
struct ReadValue {
  const Node& node;
  std::string_view path;
  Problems& problems;

  std::optional<Value> refuse(std::string_view allowed, std::string_view why = "") const {
    problems.add(node.where, path, found_allowed(node, allowed).append(why));
    return std::nullopt;
  }

  bool is_plain() const { return node.is_scalar() && !node.quoted; }

  std::optional<Value> operator()(const Boolean& type) const {
    if (is_plain() && node.text == "true") return true;
    if (is_plain() && node.text == "false") return false;
    return refuse(allowed(type));
  }

  std::optional<Value> operator()(const Text& type) const {
    if (node.is_scalar()) return node.text;
    return refuse(allowed(type));
  }

  std::optional<Value> operator()(const Integer& type) const { return number(parse_integer, type); }
  std::optional<Value> operator()(const Real& type) const { return number(parse_real, type); }

  std::optional<Value> operator()(const OneOf& type) const {
    if (!node.is_scalar()) return refuse(allowed(type));
    if (std::find(type.words.begin(), type.words.end(), node.text) != type.words.end()) return node.text;
    const auto nearest = nearest_name(node.text, type.words);
    return refuse(allowed(type), nearest ? fmt::format(" (did you mean '{}'?)", *nearest) : "");
  }

  std::optional<Value> operator()(const IntegerList& type) const {
    if (!node.is_sequence()) return refuse(allowed(type));
    std::vector<std::int64_t> values;
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const std::string element = fmt::format("{}[{}]", path, i);
      const auto value = read_value(Integer{type.minimum, type.maximum}, node.items[i], element, problems);
      if (value) values.push_back(std::get<std::int64_t>(*value));
    }
    if (values.size() != node.items.size()) return std::nullopt;
    return values;
  }

  std::optional<Value> operator()(const Duration& type) const { return quantity(parse_duration, type); }
  std::optional<Value> operator()(const Size& type) const { return quantity(parse_size, type); }

  template <class Parse, class Type>
  std::optional<Value> number(Parse parse, const Type& type) const {
    if (!is_plain()) return refuse(allowed(type));
    const auto parsed = parse(node.text);
    if (parsed.fault != NumberFault::none) return refuse(allowed(type), hint(parsed.fault));
    if (parsed.value < type.minimum || parsed.value > type.maximum) return refuse(allowed(type));
    return parsed.value;
  }

  template <class Parse, class Type>
  std::optional<Value> quantity(Parse parse, const Type& type) const {
    if (!node.is_scalar()) return refuse(allowed(type));
    try {
      return parse(node.text);
    } catch (const InvalidInput& error) {
      problems.add(node.where, path, error.what());
      return std::nullopt;
    }
  }
};

}  // namespace

std::string found_allowed(const Node& node, std::string_view allowed) {
  return fmt::format("found {}, allowed: {}", found(node), allowed);
}

std::optional<Value> read_value(const OptionType& type, const Node& node, std::string_view path, Problems& problems) {
  return std::visit(ReadValue{node, path, problems}, type);
}

}  // namespace millrace::config
