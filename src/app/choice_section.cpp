// A name of a registry with its options, in short (`dp`) or long form (`{name: dp, time_limit: 5 s}`).
#include <algorithm>

#include "app/sections.h"
#include "base/text.h"
#include "config/emit.h"

namespace millrace::app {

Choice read_choice(const config::Field& field, const std::string& what, const std::vector<NamedOptions>& rows) {
  const auto find = [&](const config::Field& name_field) -> const NamedOptions* {
    const std::string name = name_field.as(config::Text{});
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const NamedOptions& r) { return r.name == name; });
    if (row != rows.end()) return &*row;
    std::vector<std::string> names;
    for (const NamedOptions& r : rows) names.push_back(r.name);
    if (!name.empty()) name_field.refuse(unknown_name(what, name, names));
    return nullptr;
  };
  if (!field.is_map()) {
    const NamedOptions* row = find(field);
    return row != nullptr ? Choice{row->name, config::defaults(row->options)} : Choice{};
  }
  config::Reader reader(field);
  const NamedOptions* row = find(reader.field("name"));
  if (row == nullptr) {
    reader.entries();  // without the name nothing can be said about the options
    return {};
  }
  return {row->name, config::read_values(reader, row->options)};
}

config::Node write_choice(const Choice& choice) {
  config::Node node = config::Node::map();
  node.add("name", config::Node::quote(choice.name));
  for (const auto& [name, value] : choice.options.all()) node.add(name, config::to_node(value));
  return node;
}

}  // namespace millrace::app
