// Parses JSON with the checks that the library leaves out, and reads its values with errors that tell the place.
#include "import/json_file.h"

#include <cmath>
#include <unordered_set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "config/document.h"
#include "config/option.h"
#include "import/json_nodes.h"
#include "import/json_place.h"

namespace millrace::import {
namespace {

using nlohmann::json;

constexpr int kDeepest = 64;

// The library keeps the last of two equal keys in silence, and unfolds any depth.
class Checks {
 public:
  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    sound_ = sound_ && depth <= kDeepest;
    if (!sound_) return false;  // nothing more is kept
    if (event == json::parse_event_t::object_start) {
      keys_.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys_.pop_back();
    } else if (event == json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      sound_ = keys_.back().insert(key).second;
    }
    return sound_;
  }
  bool sound() const { return sound_; }

 private:
  std::vector<std::unordered_set<std::string>> keys_;
  bool sound_ = true;
};

// In the words of the configuration's own errors.
std::string found(const json& value) {
  using config::Node;
  if (value.is_object()) return config::found(Node::map());
  if (value.is_array()) return config::found(Node::sequence());
  if (value.is_null()) return config::found(Node());
  return config::found(value.is_string() ? Node::quote(value.get<std::string>()) : Node::plain(value.dump()));
}

}  // namespace

JsonFile::JsonFile(std::string file_name, std::string_view file_text)
    : name(std::move(file_name)), text(without_byte_order_mark(file_text)), document(std::make_unique<json>()) {
  Checks checks;
  try {
    *document = json::parse(text.begin(), text.end(), std::ref(checks));
    if (checks.sound()) return;
  } catch (const json::exception&) {
    document = nullptr;
  }
  load_json(text, config::file_source(name), "", nullptr);  // refuses the same, and knows where it stands
  throw InvalidInput(fmt::format("{}: not JSON", name));
}

JsonFile::~JsonFile() = default;

void JsonValue::refuse(std::string_view reason) const {
  const JsonPath path = path_of(*file_->document, *value_);
  const std::string where = to_text(path);
  throw InvalidInput(
      fmt::format("{}:{}: {}{}{}", file_->name, line_of(file_->text, path), where, where.empty() ? "" : ": ", reason));
}

void JsonValue::expected(std::string_view allowed) const {
  refuse(fmt::format("found {}, allowed: {}", found(*value_), allowed));
}

const json& JsonValue::object() const {
  if (!value_->is_object()) expected("a map");
  return *value_;
}

JsonValue JsonValue::at(std::string_view key) const {
  const auto item = object().find(key);
  if (item == value_->end()) refuse(fmt::format("key '{}' must be given", key));
  return {*file_, *item};
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  const auto item = object().find(key);
  if (item == value_->end() || item->is_null()) return std::nullopt;
  return JsonValue(*file_, *item);
}

std::vector<JsonValue> JsonValue::items() const {
  if (!value_->is_array()) expected("a list");
  std::vector<JsonValue> all;
  all.reserve(value_->size());
  for (const json& item : *value_) all.emplace_back(*file_, item);
  return all;
}

std::vector<std::pair<std::string, JsonValue>> JsonValue::entries() const {
  std::vector<std::pair<std::string, JsonValue>> all;
  for (const auto& [key, value] : object().items()) all.emplace_back(key, JsonValue(*file_, value));
  return all;
}

double JsonValue::number() const {
  const double value = value_->is_number() ? value_->get<double>() : -1;
  if (!(value >= 0) || std::isinf(value)) expected("number, at least 0");
  return value;
}

double JsonValue::bytes() const {
  const double value = number();
  if (value >= 0x1p63) expected("number of bytes, below 2^63");
  return value;
}

std::int64_t JsonValue::integer(std::int64_t minimum, std::int64_t maximum) const {
  const std::string allowed = config::allowed(config::Integer{minimum, maximum});
  if (value_->is_number_unsigned() && value_->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
    expected(allowed);
  }
  std::int64_t value = 0;
  if (value_->is_number_integer()) {
    value = value_->get<std::int64_t>();
  } else if (value_->is_number_float()) {  // Python writes 3.0 where it divided
    const double real = value_->get<double>();
    if (real != std::floor(real) || std::abs(real) >= 0x1p53) expected(allowed);
    value = static_cast<std::int64_t>(real);
  } else {
    expected(allowed);
  }
  if (value < minimum || value > maximum) expected(allowed);
  return value;
}

bool JsonValue::flag() const {
  if (value_->is_boolean()) return value_->get<bool>();
  if (value_->is_number() && (value_->get<double>() == 0 || value_->get<double>() == 1)) {
    return value_->get<double>() == 1;
  }
  expected("true, false, 1 or 0");
}

std::string JsonValue::text() const {
  if (!value_->is_string()) expected("text");
  return value_->get<std::string>();
}

}  // namespace millrace::import
