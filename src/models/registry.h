// The networks that millrace ships: one row each serves `millrace models`, the check of model.options and the tests.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/option.h"
#include "config/values.h"
#include "graph/graph.h"

namespace millrace::models {

struct Entry {
  std::string name;
  std::string description;
  config::Options options;
  /// `values` holds every option. The graph of a network ends in the operator "loss" and reads "input" and "labels"
  /// (gnmt also "target"); made-up graphs have neither data nor loss.
  /// \throws InvalidInput  options that do not fit together: names the operator, what was found and what is allowed.
  std::function<Graph(const config::Values&)> make;
};

/// In the order in which they are listed.
const std::vector<Entry>& registry();

/// \throws InvalidInput  with the nearest and all valid names.
const Entry& by_name(std::string_view name);

/// The network with some options as written in YAML and the others at their defaults: make("gpt", {{"layers", "2"}}).
/// \throws InvalidInput  an unknown model or option, a value out of range.
Graph make(std::string_view name, const std::map<std::string, std::string>& written = {});

}  // namespace millrace::models
