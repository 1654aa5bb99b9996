// Words for people: nearest names, lists, sizes and durations.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace millrace {

/// The candidate with the smallest edit distance (a swap of neighbours counts once), at most max(2, a third of the
/// longer) edits away; else the only one that begins with `word`, of 3 letters or more (`activat`: activation_size).
std::optional<std::string> nearest_name(std::string_view word, std::span<const std::string> candidates);

/// "a, b, c".
std::string join(std::span<const std::string> parts, std::string_view separator = ", ");

/// The standard refusal of a name: `unknown WHAT 'dpp' (did you mean 'dp'?); valid: dp, exact`.
std::string unknown_name(std::string_view what, std::string_view word, std::span<const std::string> valid);

/// True if `name` matches the glob `pattern` as a whole; `*` stands for any characters, dots too; `?` for one.
bool matches_glob(std::string_view pattern, std::string_view name);

std::string format(Bytes bytes);      ///< "12.3 MiB"
std::string format(Seconds seconds);  ///< "4.56 ms"

}  // namespace millrace
