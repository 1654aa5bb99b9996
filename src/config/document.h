// Reads one strict YAML document into plain nodes; the only door to the YAML library.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "config/node.h"
#include "config/problems.h"

namespace millrace::config {

enum class Root { map, any };  ///< what the document as a whole may be

/// Reads a file; errors cite it by the name that is given here.
///
/// At once, because nothing can be said about the rest, it throws on: a file that is missing, a directory, not UTF-8
/// text, empty, or not YAML; tabs in indentation (a document that opens with '{' or '[', as JSON does, may have them),
/// a second document, a root that is no map, nesting beyond 64 levels, aliases that unfold to over a million nodes.
/// Into `problems` go duplicate keys (with both lines; the first value is kept), merge keys `<<` and tags.
/// \throws InvalidInput  `file:line:column: reason`
Node load_file(const std::filesystem::path& file, Problems& problems);

/// The same for text that was read from `source`, which may be null: then errors tell no place.
Node load_text(std::string_view text, std::shared_ptr<const Source> source, Problems& problems, Root root = Root::map);

/// The source of a file: its name as given and the folder that it lies in.
std::shared_ptr<const Source> file_source(const std::filesystem::path& file);

}  // namespace millrace::config
