// Settings that were read and checked against their option records; defaults are filled in.
#include "config/values.h"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "base/errors.h"
#include "config/document.h"
#include "config/scalar.h"

namespace millrace::config {
namespace {

template <class Type>
const Type& get(const std::map<std::string, Value, std::less<>>& values, std::string_view name) {
  const auto entry = values.find(name);
  if (entry == values.end()) throw std::logic_error(fmt::format("option '{}' has no value", name));
  const Type* value = std::get_if<Type>(&entry->second);
  if (!value) throw std::logic_error(fmt::format("option '{}' is asked for as another type", name));
  return *value;
}

}  // namespace

void Values::set(std::string name, Value value) { values_.insert_or_assign(std::move(name), std::move(value)); }
bool Values::has(std::string_view name) const { return values_.find(name) != values_.end(); }

bool Values::boolean(std::string_view name) const { return get<bool>(values_, name); }
std::int64_t Values::integer(std::string_view name) const { return get<std::int64_t>(values_, name); }
double Values::real(std::string_view name) const { return get<double>(values_, name); }
const std::string& Values::text(std::string_view name) const { return get<std::string>(values_, name); }
const std::vector<std::int64_t>& Values::integers(std::string_view name) const {
  return get<std::vector<std::int64_t>>(values_, name);
}
Seconds Values::duration(std::string_view name) const { return get<Seconds>(values_, name); }
Bytes Values::size(std::string_view name) const { return get<Bytes>(values_, name); }

Values defaults(const Options& options) {
  Values values;
  for (const Option& option : options) {
    if (option.standard.empty()) continue;
    try {
      values.set(option.name, parse_value(option.type, option.standard));
    } catch (const InvalidInput& error) {
      throw std::logic_error(fmt::format("default of option '{}': {}", option.name, error.what()));
    }
  }
  return values;
}

Value parse_value(const OptionType& type, std::string_view written) {
  Problems problems;
  const Node node = load_text(written, nullptr, problems, Root::any);
  const auto value = read_value(type, node, "", problems);
  problems.throw_if_any();
  return value.value();
}

}  // namespace millrace::config
