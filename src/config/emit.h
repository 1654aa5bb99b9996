// Writes nodes as YAML that a person can read and edit, and that reads back as the same nodes.
#pragma once

#include <string>

#include "config/node.h"
#include "config/values.h"

namespace millrace::config {

/// Block style; lists without maps in them, and what is empty, in flow style. Ends with a line break. Text is quoted
/// where it would not read back as text: numbers, true, null, and what holds YAML's own marks.
std::string to_yaml(const Node& node);

/// A value as a node, for the effective configuration. Reals are the shortest text that reads back as the same double;
/// sizes are bytes (`26214400 B`), durations seconds (`1e-05 s`).
Node to_node(const Value& value);

/// A map of all values, by name.
Node to_node(const Values& values);

}  // namespace millrace::config
