// Reads the value of an option from a node: the one place where text becomes a number, a word or a quantity.
#pragma once

#include <optional>
#include <string_view>

#include "config/node.h"
#include "config/option.h"
#include "config/problems.h"
#include "config/values.h"

namespace millrace::config {

/// The value of `node` as `type`. What does not fit goes into `problems`, at the place of the node (of each element of
/// a list), with `path` as the path of its key: "found '1e3', allowed: integer, at least 1".
///
/// Quoted text is never a number or a boolean; quantities and words may be quoted.
std::optional<Value> read_value(const OptionType& type, const Node& node, std::string_view path, Problems& problems);

/// "found '1e3', allowed: integer, at least 1": the standard refusal of a value.
std::string found_allowed(const Node& node, std::string_view allowed);

}  // namespace millrace::config
