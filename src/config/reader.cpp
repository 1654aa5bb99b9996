// Reads the keys of a map by name; every fault is noted with its place, none is thrown, no key is overlooked.
#include "config/reader.h"

#include <algorithm>
#include <type_traits>

#include <fmt/format.h>

#include "base/text.h"
#include "config/scalar.h"

namespace millrace::config {
namespace {

bool is_note(std::string_view key) { return key.substr(0, 2) == "x-"; }

Value blank(const OptionType& type) {
  return std::visit([](const auto& t) { return Value(Native<std::decay_t<decltype(t)>>{}); }, type);
}

}  // namespace

Reader::Reader(const Field& field)
    : field_(field), map_(field.is_map() ? field.node() : nullptr), problems_(*field.problems_) {
  ++problems_.open_readers_;
  if (field.given() && !map_) {
    field.expected("a map");
    field_.problems_ = &discarded_;
  }
}

Reader::~Reader() {
  --problems_.open_readers_;
  if (!map_) return;
  for (const Key& key : map_->keys) {
    const bool is_known = std::find(known_.begin(), known_.end(), key.text) != known_.end();
    // '<<' has been refused as what it is.
    if (is_known || is_note(key.text) || key.text == "<<") continue;
    problems_.add(key.where, path_of(key.text),
                  known_.empty() ? fmt::format("unknown key '{}'; none is allowed here", key.text)
                                 : unknown_name("key", key.text, known_));
  }
}

std::string Reader::path_of(std::string_view key) const {
  return path().empty() ? std::string(key) : fmt::format("{}.{}", path(), key);
}

Field Reader::field(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  const Node* node = map_ ? map_->find(key) : nullptr;
  return node ? Field(*node, path_of(key), *field_.problems_) : Field(field_.where(), path_of(key), *field_.problems_);
}

std::vector<std::pair<std::string, Field>> Reader::entries() {
  std::vector<std::pair<std::string, Field>> fields;
  if (!map_) return fields;
  for (std::size_t i = 0; i < map_->keys.size(); ++i) {
    const std::string& key = map_->keys[i].text;
    if (is_note(key) || key == "<<") continue;
    known_.push_back(key);
    fields.emplace_back(key, Field(map_->items[i], path_of(key), problems_));
  }
  return fields;
}

Values read_values(Reader& reader, const Options& options) {
  Values values = defaults(options);
  for (const Option& option : options) {
    const Field field = reader.field(option.name);
    if (!field && values.has(option.name)) continue;
    const std::optional<Value> value = field.value(option.type);
    values.set(option.name, value ? *value : blank(option.type));
  }
  return values;
}

}  // namespace millrace::config
