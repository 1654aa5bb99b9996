// The table of built-in networks and their options (INTERFACES 9, model options' defaults).
#include "models/registry.h"

#include <iterator>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/text.h"
#include "models/entries.h"

namespace millrace::models {

using config::Option;
using config::Options;
using config::Values;

Option positive(std::string name, std::string text, std::string standard, std::int64_t minimum, std::int64_t maximum) {
  return {std::move(name), std::move(text), config::Integer{minimum, maximum}, std::move(standard)};
}

Options image_options(std::string classes, std::string image, std::string channels, std::int64_t smallest) {
  return {positive("classes", "number of classes", std::move(classes)),
          positive("image", "height and width in pixels", std::move(image), smallest, 65536),
          positive("channels", "channels of an image", std::move(channels), 1, 65536)};
}

Option dropout_option(std::string where) {
  return {"dropout", "probability of dropout " + where, config::Real{0.0, 0.999}, "0"};
}

const std::vector<Entry>& registry() {
  static const std::vector<Entry> entries = [] {
    std::vector<Entry> all;
    for (const auto& rows : {image_entries, branching_entries, sequence_entries, synthetic_entries}) {
      std::vector<Entry> some = rows();
      std::move(some.begin(), some.end(), std::back_inserter(all));
    }
    return all;
  }();
  return entries;
}

const Entry& by_name(std::string_view name) {
  std::vector<std::string> valid;
  for (const Entry& entry : registry()) {
    if (entry.name == name) return entry;
    valid.push_back(entry.name);
  }
  throw InvalidInput(unknown_name("model", name, valid));
}

Graph make(std::string_view name, const std::map<std::string, std::string>& written) {
  const Entry& entry = by_name(name);
  Values values = config::defaults(entry.options);
  for (const auto& [key, text] : written) {
    const Option* option = nullptr;
    std::vector<std::string> valid;
    for (const Option& candidate : entry.options) {
      valid.push_back(candidate.name);
      if (candidate.name == key) option = &candidate;
    }
    if (option == nullptr) throw InvalidInput(unknown_name(fmt::format("option of model {}", entry.name), key, valid));
    try {
      values.set(key, config::parse_value(option->type, text));
    } catch (const InvalidInput& error) {
      throw InvalidInput(fmt::format("option '{}' of model {}: {}", key, entry.name, error.what()));
    }
  }
  return entry.make(values);
}

}  // namespace millrace::models
