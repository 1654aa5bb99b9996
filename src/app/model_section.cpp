// `model: {name: resnet50, options: {classes: 10}}`, or `model: {file: graph.yaml}`.
#include "app/sections.h"
#include "base/text.h"
#include "config/emit.h"
#include "models/registry.h"

namespace millrace::app {
namespace {

// Built in, by its name.
ModelSection read_named(const config::Field& name_field, const config::Field& options) {
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
  return {name, config::read_values(option_reader, entry->options), {}};
}

ModelSection read_file(const config::Field& file, const config::Field& options) {
  ModelSection model;
  model.file = file.input_file();
  model.name = model.file->stem().string();
  config::Reader reader(options);
  if (const auto batch = reader.optional("profile_batch", config::Integer{1}))
    model.options.set("profile_batch", *batch);
  return model;
}

}  // namespace

ModelSection read_model(const config::Field& field) {
  config::Reader reader(field);
  const config::Field name = reader.field("name");
  const config::Field file = reader.field("file");
  const config::Field options = reader.field("options");
  if (name && file) file.refuse("given beside model.name; allowed: a built-in model's name or a graph's file");
  return file ? read_file(file, options) : read_named(name, options);
}

config::Node write_model(const ModelSection& model) {
  config::Node node = config::Node::map();
  if (model.file) {
    node.add("file", config::Node::quote(model.file->string()));
  } else {
    node.add("name", config::Node::quote(model.name));
  }
  node.add("options", config::to_node(model.options));
  return node;
}

}  // namespace millrace::app
