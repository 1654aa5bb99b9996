// Reads JSON as the nodes of the config room, with the place of every key; one long list can be read element by
// element.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "config/node.h"

namespace millrace::import {

/// Takes the elements of a list in their order.
using NodeSink = std::function<void(config::Node)>;

/// The document, where the list under the root's key `streamed` is left empty: its elements go to `sink`, so that a
/// file of 100,000 operators needs the memory of one. Without a sink they are skipped. \throws InvalidInput  with line
/// and column: no JSON, not UTF-8, a key twice in a map, nesting beyond 64 levels, a root that is no map.
config::Node load_json(std::string_view text, const std::shared_ptr<const config::Source>& source,
                       const std::string& streamed, const NodeSink& sink);

}  // namespace millrace::import
