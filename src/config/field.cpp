// One value of a configuration: the node at a key path, or its absence, and the reading of it as a type.
#include "config/field.h"

#include <utility>

#include <fmt/format.h>

#include "base/errors.h"
#include "config/input_file.h"
#include "config/quantity.h"
#include "config/reader.h"
#include "config/scalar.h"

namespace millrace::config {

Field::Field(const Node& node, std::string path, Problems& problems)
    : node_(&node), where_(node.where), path_(std::move(path)), problems_(&problems) {}

Field::Field(const Where& parent, std::string path, Problems& problems)
    : where_(parent), path_(std::move(path)), problems_(&problems) {}

void Field::refuse(std::string_view reason) const { problems_->add(where_, path_, reason); }

void Field::expected(std::string_view allowed) const {
  refuse(node_ ? found_allowed(*node_, allowed) : fmt::format("missing, allowed: {}", allowed));
}

// The rates are no option types: only cluster files have them.
template <class Rate, class Parse>
Rate Field::rate(Parse parse, std::string_view allowed) const {
  if (!is_scalar()) {
    expected(allowed);
    return {};
  }
  try {
    return parse(node_->text);
  } catch (const InvalidInput& error) {
    refuse(error.what());
    return {};
  }
}

std::optional<Value> Field::value(const OptionType& type) const {
  if (node_) return read_value(type, *node_, path_, *problems_);
  expected(allowed(type));
  return std::nullopt;
}

BytesPerSecond Field::bandwidth() const { return rate<BytesPerSecond>(parse_bandwidth, allowed_bandwidth()); }
FlopsPerSecond Field::compute_rate() const { return rate<FlopsPerSecond>(parse_compute_rate, allowed_compute_rate()); }

std::vector<Field> Field::items() const {
  std::vector<Field> fields;
  if (!is_list()) {
    expected("a list");
    return fields;
  }
  for (const Node& item : node_->items) {
    fields.emplace_back(item, fmt::format("{}[{}]", path_, fields.size()), *problems_);
  }
  return fields;
}

std::vector<Field> Field::items_or_one() const {
  if (is_scalar() || is_map()) return {*this};
  if (is_list() && node_->items.empty()) refuse("found an empty list, allowed: at least one element");
  return items();
}

Reader Field::map() const { return Reader(*this); }

std::filesystem::path Field::input_file() const {
  const std::string written = as(Text{});
  if (!is_scalar()) return {};
  try {
    return find_input(written, where_.source ? where_.source->folder : std::filesystem::path());
  } catch (const InvalidInput& error) {
    refuse(error.what());
    return {};
  }
}

}  // namespace millrace::config
