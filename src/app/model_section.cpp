// `model: {name: resnet50, options: {classes: 10}}`.
#include "app/sections.h"
#include "base/text.h"
#include "config/emit.h"
#include "models/registry.h"

namespace millrace::app {

Choice read_model(const config::Field& field) {
  config::Reader reader(field);
  const config::Field name_field = reader.field("name");
  const config::Field options = reader.field("options");
  const std::string name = name_field.as(config::Text{});
  const models::Entry* entry = nullptr;
  std::vector<std::string> names;
  for (const models::Entry& row : models::registry()) {
    names.push_back(row.name);
    if (row.name == name) entry = &row;
  }
  if (entry == nullptr) {
    if (name_field.given() && !name.empty()) name_field.refuse(unknown_name("model", name, names));
    return {};
  }
  config::Reader option_reader(options);
  return {name, config::read_values(option_reader, entry->options)};
}

config::Node write_model(const Choice& model) {
  config::Node node = config::Node::map();
  node.add("name", config::Node::quote(model.name));
  node.add("options", config::to_node(model.options));
  return node;
}

}  // namespace millrace::app
