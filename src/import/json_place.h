// Finds where a value stands in a JSON text: its path of keys, and its line. Used for errors only.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace millrace::import {

using JsonStep = std::variant<std::string, std::size_t>;  ///< a key, or a position in a list
using JsonPath = std::vector<JsonStep>;

/// The way from `root` to the value that lies at `target`, found by its address.
JsonPath path_of(const nlohmann::json& root, const nlohmann::json& target);

/// "nodes[3].size"
std::string to_text(const JsonPath& path);

/// Line, from 1, of the value at `path` in `text`. \pre the text is valid JSON and has that value.
int line_of(std::string_view text, const JsonPath& path);

/// Line and column, from 1, of the byte at `at`.
std::pair<int, int> line_and_column(std::string_view text, std::size_t at);

/// The text behind the mark that some editors put before UTF-8.
std::string_view without_byte_order_mark(std::string_view text);

/// Whether the first character that is no space is '{' or '['.
bool opens_like_json(std::string_view text);

/// What the JSON library says of a fault, without its prefix, its position and its quotation of bytes that may be no
/// text.
std::string reason_of(std::string_view what);

}  // namespace millrace::import
